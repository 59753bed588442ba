import type { ArrowTable } from "../wire/arrow.ts";

/** What a reader calls the streams and pools of a recording. */
export interface Names {
  readonly stream: (id: number) => string;
  readonly pool: (id: number) => string;
}

/** Names from the tables that have them; the last row of an id holds. */
export class RecordedNames implements Names {
  readonly #streams = new Map<number, string>();
  readonly #pools = new Map<number, string>();

  /** Takes rows of `streams` or `pools`; other tables are passed over. */
  append(table: ArrowTable): void {
    if (table.name === "streams") {
      const names = table.texts("name");
      const handles = table.numbers("handle");
      table.numbers("id").forEach((id, row) => {
        this.#streams.set(id, nameStream(names[row] ?? "", handles[row] ?? 0));
      });
    } else if (table.name === "pools") {
      const segmentTypes = table.texts("segment_type");
      table.numbers("id").forEach((id, row) => {
        this.#pools.set(id, namePool(id, segmentTypes[row] ?? ""));
      });
    }
  }

  readonly stream = (id: number): string =>
    this.#streams.get(id) ?? (id === 0 ? "no stream" : `stream ${id}`);

  readonly pool = (id: number): string =>
    this.#pools.get(id) ?? namePool(id, id % 2 === 1 ? "large" : "small");
}

function nameStream(name: string, handle: number): string {
  if (name !== "") {
    return name;
  }
  return handle === 0 ? "default stream" : `stream 0x${handle.toString(16)}`;
}

function namePool(id: number, segmentType: string): string {
  const number = Math.floor(id / 2);
  return number === 0 ? `default (${segmentType})` : `MemPool ${number} (${segmentType})`;
}
