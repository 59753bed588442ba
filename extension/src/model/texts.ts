import type { ArrowTable } from "../wire/arrow.ts";

/** Texts by id, from a table that has one in each row. */
export class Texts {
  readonly #column: string;
  readonly #byId = new Map<number, string>();

  constructor(column: string) {
    this.#column = column;
  }

  append(table: ArrowTable): void {
    const texts = table.texts(this.#column);
    table.numbers("id").forEach((id, row) => this.#byId.set(id, texts[row] ?? ""));
  }

  get count(): number {
    return this.#byId.size;
  }

  /** The text, empty where there is none. */
  get(id: number): string {
    return this.#byId.get(id) ?? "";
  }
}
