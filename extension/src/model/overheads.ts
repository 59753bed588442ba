import { rowsOf } from "../wire/table_rows.ts";

/** In the order of `DICTIONARIES` in gpuviz/recording/tables.py. */
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
export class Overheads extends rowsOf({
  fromNs: ["time", "number"],
  toNs: ["end", "number"],
  kind: ["kind", KINDS],
  // The thread that it was spent on, 0 if unknown.
  thread: ["thread", "whole"],
}) {
  /** In CUPTI's words, such as `lazy function loading`. */
  nameOf(row: number): string {
    return (KINDS[this.kind[row] ?? 0] ?? "").replaceAll("_", " ");
  }
}
