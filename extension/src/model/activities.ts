import { GrowingBytes, GrowingFloats, GrowingIds } from "../base/growing.ts";
import { RowsByKey } from "../base/rows_by_key.ts";
import type { ArrowTable } from "../wire/arrow.ts";

/** In the order of `DICTIONARIES` in gpuviz/tables.py. */
const KINDS = ["kernel", "memcpy", "memset", "graph", "range"] as const;
const COPY_KINDS = [
  "",
  "host_to_device",
  "device_to_host",
  "device_to_device",
  "host_to_host",
  "peer_to_peer",
] as const;
const MEMORIES = ["", "pageable", "pinned", "device", "array", "managed"] as const;

export const ActivityKind = { kernel: 0, memcpy: 1, memset: 2, graph: 3, range: 4 } as const;
export const CopyKind = { hostToDevice: 1, deviceToHost: 2, deviceToDevice: 3 } as const;

/** Kernels, copies, memsets, graph launches and ranges on streams, in the order they came. */
export class Activities {
  readonly #fromNs = new GrowingFloats();
  readonly #toNs = new GrowingFloats();
  readonly #bytes = new GrowingFloats();
  readonly #kind = new GrowingBytes();
  readonly #copyKind = new GrowingBytes();
  readonly #source = new GrowingBytes();
  readonly #destination = new GrowingBytes();
  readonly #name = new GrowingIds();
  readonly #device = new GrowingIds();
  readonly #stream = new GrowingIds();
  readonly #correlation = new GrowingIds();
  readonly #graph = new GrowingIds();
  readonly #launch = new GrowingIds();
  readonly byCorrelation = new RowsByKey();

  append(table: ArrowTable): void {
    const correlation = table.numbers("correlation");
    this.#fromNs.append(table.numbers("time"));
    this.#toNs.append(table.numbers("end"));
    this.#bytes.append(table.numbers("bytes"));
    this.#kind.append(table.codes("kind", KINDS));
    this.#copyKind.append(table.codes("copy_kind", COPY_KINDS));
    this.#source.append(table.codes("source", MEMORIES));
    this.#destination.append(table.codes("destination", MEMORIES));
    this.#name.append(table.numbers("name"));
    this.#device.append(table.numbers("device"));
    this.#stream.append(table.numbers("stream"));
    this.#correlation.append(correlation);
    this.#graph.append(table.numbers("graph"));
    this.#launch.append(table.numbers("launch"));
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

  get bytes(): Float64Array<ArrayBuffer> {
    return this.#bytes.view();
  }

  get kind(): Uint8Array<ArrayBuffer> {
    return this.#kind.view();
  }

  get copyKind(): Uint8Array<ArrayBuffer> {
    return this.#copyKind.view();
  }

  get name(): Uint32Array<ArrayBuffer> {
    return this.#name.view();
  }

  get device(): Uint32Array<ArrayBuffer> {
    return this.#device.view();
  }

  get stream(): Uint32Array<ArrayBuffer> {
    return this.#stream.view();
  }

  get correlation(): Uint32Array<ArrayBuffer> {
    return this.#correlation.view();
  }

  get graph(): Uint32Array<ArrayBuffer> {
    return this.#graph.view();
  }

  get launch(): Uint32Array<ArrayBuffer> {
    return this.#launch.view();
  }

  /** The memories that a copy went between, such as `pageable` and `device`; empty if unknown. */
  memoriesOf(row: number): readonly [from: string, to: string] {
    const nameOf = (code: number | undefined): string => MEMORIES[code ?? 0] ?? "";
    return [nameOf(this.#source.view()[row]), nameOf(this.#destination.view()[row])];
  }
}
