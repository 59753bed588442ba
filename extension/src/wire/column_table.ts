import { UNKNOWN_CODE, type Table } from "./table.ts";

/** Texts of which each row has one, by its place among them. */
export interface CodedTexts {
  readonly texts: readonly string[];
  readonly codes: Uint8Array<ArrayBuffer>;
}

export type TableColumn =
  Float64Array<ArrayBuffer> | readonly string[] | readonly (readonly number[])[] | CodedTexts;

/** A table of columns that are in memory; without any, a table without rows that has each. */
export class ColumnTable implements Table {
  readonly name: string;
  readonly #columns: Readonly<Record<string, TableColumn>> | undefined;

  constructor(name: string, columns?: Readonly<Record<string, TableColumn>>) {
    this.name = name;
    this.#columns = columns;
  }

  get rows(): number {
    const [first] = Object.values(this.#columns ?? {});
    return first === undefined ? 0 : lengthOf(first);
  }

  has(name: string): boolean {
    return this.#columns === undefined || name in this.#columns;
  }

  numbers(name: string): Float64Array<ArrayBuffer> {
    const column = this.#column(name) ?? new Float64Array();
    return column instanceof Float64Array ? column : this.#fail(name, "numbers");
  }

  texts(name: string): readonly string[] {
    const column = this.#column(name) ?? [];
    if (isCoded(column)) {
      return Array.from(column.codes, (code) => column.texts[code] ?? "");
    }
    return isTexts(column) ? column : this.#fail(name, "texts");
  }

  lists(name: string): readonly (readonly number[])[] {
    const column = this.#column(name) ?? [];
    return isLists(column) ? column : this.#fail(name, "lists");
  }

  codes(name: string, texts: readonly string[]): Uint8Array<ArrayBuffer> {
    const column = this.#column(name);
    if (column === undefined) {
      return new Uint8Array();
    }
    if (!isCoded(column)) {
      return this.#fail(name, "coded texts");
    }
    const places = column.texts.map((text) => texts.indexOf(text));
    return column.codes.map((code) => {
      const place = places[code] ?? -1;
      return place < 0 ? UNKNOWN_CODE : place;
    });
  }

  #column(name: string): TableColumn | undefined {
    const column = this.#columns?.[name];
    if (column === undefined && this.#columns !== undefined) {
      throw new Error(`The table ${this.name} has no column ${name}.`);
    }
    return column;
  }

  #fail(name: string, expected: string): never {
    throw new TypeError(`The column ${name} of the table ${this.name} does not hold ${expected}.`);
  }
}

function lengthOf(column: TableColumn): number {
  return isCoded(column) ? column.codes.length : column.length;
}

function isCoded(column: TableColumn): column is CodedTexts {
  return "codes" in column;
}

function isTexts(column: TableColumn): column is readonly string[] {
  return Array.isArray(column) && (column.length === 0 || typeof column[0] === "string");
}

function isLists(column: TableColumn): column is readonly (readonly number[])[] {
  return Array.isArray(column) && (column.length === 0 || Array.isArray(column[0]));
}
