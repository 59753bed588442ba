import type { ArrowTable } from "../wire/arrow.ts";
import { NAMED_KINDS } from "../wire/codes.ts";

/** What a reader calls the streams and pools of a recording, by their ids. */
export interface Names {
  readonly stream: (id: number) => string;
  readonly pool: (id: number) => string;
  /** What holds a block at the end, by its address; those that are unknown are left out. */
  readonly holders: ReadonlyMap<number, string>;
}

/** The names in the table `names`; before they arrive, the ids. */
export class RecordedNames implements Names {
  readonly #names = NAMED_KINDS.map(() => new Map<number, string>());
  readonly holders = new Map<number, string>();

  /** The name of a kernel; empty before it arrives. */
  kernel(id: number): string {
    return this.#names[NAMED_KINDS.indexOf("kernel")]?.get(id) ?? "";
  }

  readonly stream = this.#named("stream");
  readonly pool = this.#named("pool");

  append(table: ArrowTable): void {
    if (table.name === "held_blocks") {
      const holders = table.texts("holder");
      table
        .numbers("address")
        .forEach((address, row) => this.holders.set(address, holders[row] ?? ""));
      return;
    }
    const kinds = table.codes("of", NAMED_KINDS);
    const names = table.texts("name");
    table.numbers("id").forEach((id, row) => {
      this.#names[kinds[row] ?? 0]?.set(id, names[row] ?? "");
    });
  }

  #named(kind: "stream" | "pool"): (id: number) => string {
    const names = this.#names[NAMED_KINDS.indexOf(kind)];
    return (id) => names?.get(id) || (id === 0 ? `no ${kind}` : `${kind} ${id}`);
  }
}
