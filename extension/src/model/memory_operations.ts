import { GrowingBytes, GrowingFloats, GrowingIds } from "../base/growing.ts";
import type { ArrowTable } from "../wire/arrow.ts";
import type { Lane } from "./lanes.ts";
import { SpanKind } from "./span_kinds.ts";
import { SpanStack } from "./span_stack.ts";

/** In the order of `DICTIONARIES` in gpuviz/tables.py. */
const OPERATIONS = ["allocation", "release"] as const;
const MEMORIES = ["", "pageable", "pinned", "device", "array", "managed"] as const;
const RELEASE = 1;

/** Allocations and releases that CUDA carried out, whoever asked, in the order they came. */
export class MemoryOperations {
  readonly #atNs = new GrowingFloats();
  readonly #operation = new GrowingBytes();
  readonly #memory = new GrowingBytes();
  readonly #address = new GrowingFloats();
  readonly #bytes = new GrowingFloats();
  readonly #device = new GrowingIds();
  readonly #correlation = new GrowingIds();
  readonly #source = new GrowingIds();

  append(table: ArrowTable): void {
    this.#atNs.append(table.numbers("time"));
    this.#operation.append(table.codes("operation", OPERATIONS));
    this.#memory.append(table.codes("memory", MEMORIES));
    this.#address.append(table.numbers("address"));
    this.#bytes.append(table.numbers("bytes"));
    this.#device.append(table.numbers("device"));
    this.#correlation.append(table.numbers("correlation"));
    this.#source.append(table.numbers("source"));
  }

  get count(): number {
    return this.#atNs.length;
  }

  /** They take no time. */
  get fromNs(): Float64Array<ArrayBuffer> {
    return this.#atNs.view();
  }

  get toNs(): Float64Array<ArrayBuffer> {
    return this.#atNs.view();
  }

  get address(): Float64Array<ArrayBuffer> {
    return this.#address.view();
  }

  get bytes(): Float64Array<ArrayBuffer> {
    return this.#bytes.view();
  }

  get correlation(): Uint32Array<ArrayBuffer> {
    return this.#correlation.view();
  }

  /** The id of the name of the library that asked. */
  get source(): Uint32Array<ArrayBuffer> {
    return this.#source.view();
  }

  isRelease(row: number): boolean {
    return this.#operation.view()[row] === RELEASE;
  }

  /** Where the memory is, such as `device` or `pinned`; empty if unknown. */
  memoryOf(row: number): string {
    return MEMORIES[this.#memory.view()[row] ?? 0] ?? "";
  }

  /** A lane of those on a device, undefined where there are none. */
  laneOf(device: number): Lane | undefined {
    const ordinals = this.#device.view();
    const rows = [...ordinals.keys()].filter((row) => ordinals[row] === device);
    if (rows.length === 0) {
      return undefined;
    }
    const times = rows.map((row) => this.#atNs.at(row));
    const kind = rows.map((row) => (this.isRelease(row) ? SpanKind.release : SpanKind.allocation));
    const stack = new SpanStack();
    stack.append({ fromNs: times, toNs: times, kind, source: rows });
    return { title: "memory from CUDA", stream: undefined, stack };
  }
}
