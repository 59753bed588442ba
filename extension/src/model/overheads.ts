import { GrowingBytes, GrowingFloats, GrowingIds } from "../base/growing.ts";
import type { ArrowTable } from "../wire/arrow.ts";

/** In the order of `DICTIONARIES` in gpuviz/tables.py. */
const KINDS = [
  "unknown",
  "driver_compiler",
  "buffer_flush",
  "instrumentation",
  "resource",
  "runtime_triggered_module_loading",
  "lazy_function_loading",
  "command_buffer_full",
  "activity_buffer_request",
  "uvm_activity_init",
  "jit_load_cached",
  "jit_compile",
] as const;

/** Time that CUPTI, lazy loading or compilation took, in the order it came. */
export class Overheads {
  readonly #fromNs = new GrowingFloats();
  readonly #toNs = new GrowingFloats();
  readonly #kind = new GrowingBytes();
  readonly #thread = new GrowingIds();

  append(table: ArrowTable): void {
    this.#fromNs.append(table.numbers("time"));
    this.#toNs.append(table.numbers("end"));
    this.#kind.append(table.codes("kind", KINDS));
    this.#thread.append(table.numbers("thread"));
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

  /** The thread that it was spent on, 0 if unknown. */
  get thread(): Uint32Array<ArrayBuffer> {
    return this.#thread.view();
  }

  /** In CUPTI's words, such as `lazy function loading`. */
  nameOf(row: number): string {
    return (KINDS[this.#kind.view()[row] ?? 0] ?? "").replaceAll("_", " ");
  }
}
