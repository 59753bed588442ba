import { GrowingFloats, GrowingIds } from "../base/growing.ts";
import { RowsByKey } from "../base/rows_by_key.ts";
import type { ArrowTable } from "../wire/arrow.ts";

/** CUDA calls on the host, in the order they came. */
export class ApiCalls {
  readonly #fromNs = new GrowingFloats();
  readonly #toNs = new GrowingFloats();
  readonly #name = new GrowingIds();
  readonly #thread = new GrowingIds();
  readonly #correlation = new GrowingIds();
  readonly #stack = new GrowingIds();
  readonly byCorrelation = new RowsByKey();

  append(table: ArrowTable): void {
    const correlation = table.numbers("correlation");
    this.#fromNs.append(table.numbers("time"));
    this.#toNs.append(table.numbers("end"));
    this.#name.append(table.numbers("name"));
    this.#thread.append(table.numbers("thread"));
    this.#correlation.append(correlation);
    this.#stack.append(table.numbers("stack"));
    this.byCorrelation.append(correlation);
  }

  get count(): number {
    return this.#fromNs.length;
  }

  get fromNs(): Float64Array<ArrayBuffer> {
    return this.#fromNs.view();
  }

  get toNs(): Float64Array<ArrayBuffer> {
    return this.#toNs.view();
  }

  get name(): Uint32Array<ArrayBuffer> {
    return this.#name.view();
  }

  get thread(): Uint32Array<ArrayBuffer> {
    return this.#thread.view();
  }

  get correlation(): Uint32Array<ArrayBuffer> {
    return this.#correlation.view();
  }

  get stack(): Uint32Array<ArrayBuffer> {
    return this.#stack.view();
  }
}
