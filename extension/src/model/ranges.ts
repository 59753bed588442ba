import { GrowingBytes, GrowingFloats, GrowingIds } from "../base/growing.ts";
import type { ArrowTable } from "../wire/arrow.ts";

/** In the order of `DICTIONARIES` in gpuviz/tables.py. */
const KINDS = ["range", "cell", "nvtx"] as const;
export const RangeKind = { range: 0, cell: 1, nvtx: 2 } as const;

/** The end of a range that is still open. */
export const OPEN = -1;

/** Notebook cells, `gpuviz.range`s and NVTX ranges on host threads, one row for each id. */
export class Ranges {
  readonly #rowOfId = new Map<number, number>();
  readonly #fromNs = new GrowingFloats();
  readonly #toNs = new GrowingFloats();
  readonly #kind = new GrowingBytes();
  readonly #name = new GrowingIds();
  readonly #thread = new GrowingIds();
  readonly #parent = new GrowingIds();

  /** Takes rows; one whose id is known already replaces it. */
  append(table: ArrowTable): void {
    const ids = table.numbers("id");
    const columns = [
      [this.#fromNs, table.numbers("time")],
      [this.#toNs, table.numbers("end")],
      [this.#kind, table.codes("kind", KINDS)],
      [this.#name, table.numbers("name")],
      [this.#thread, table.numbers("thread")],
      [this.#parent, table.numbers("parent")],
    ] as const;
    ids.forEach((id, source) => {
      const row = this.#rowOfId.get(id);
      for (const [column, values] of columns) {
        if (row === undefined) {
          column.push(values[source] ?? 0);
        } else {
          column.set(row, values[source] ?? 0);
        }
      }
      this.#rowOfId.set(id, row ?? this.#rowOfId.size);
    });
  }

  get count(): number {
    return this.#fromNs.length;
  }

  get fromNs(): Float64Array<ArrayBuffer> {
    return this.#fromNs.view();
  }

  /** The end, or OPEN. */
  get toNs(): Float64Array<ArrayBuffer> {
    return this.#toNs.view();
  }

  get kind(): Uint8Array<ArrayBuffer> {
    return this.#kind.view();
  }

  get name(): Uint32Array<ArrayBuffer> {
    return this.#name.view();
  }

  get thread(): Uint32Array<ArrayBuffer> {
    return this.#thread.view();
  }

  /** The id of the range around each, or 0. */
  get parent(): Uint32Array<ArrayBuffer> {
    return this.#parent.view();
  }
}
