import { GrowingBytes, GrowingFloats, GrowingWholes, type Wholes } from "../base/growing.ts";
import { RowsByKey } from "../base/rows_by_key.ts";
import type { Table } from "./table.ts";

/** How the values of a column are kept: as doubles, as whole numbers, or as places of texts. */
type Kept = "number" | "whole" | readonly string[];

/**
 * By the name that code uses: the column of the table, and how it is kept.
 *
 * A column that older files do not have is optional; it is 0 there. The first column of a table
 * whose rows are replaced is their time.
 */
export type RowsSchema = Readonly<
  Record<string, readonly [column: string, kept: Kept, isOptional?: "optional"]>
>;

type ValuesOf<K> = K extends "number"
  ? Float64Array<ArrayBuffer>
  : K extends "whole"
    ? Wholes
    : Uint8Array<ArrayBuffer>;

type Columns<S extends RowsSchema> = { readonly [N in keyof S]: ValuesOf<S[N][1]> };

type Values = readonly ArrayLike<number>[];

/** The rows of a table that come batch after batch. */
class TableRows {
  /** The rows with a correlation id, of tables that have one. */
  readonly byCorrelation = new RowsByKey();
  readonly #schema: RowsSchema;
  readonly #columns: readonly (GrowingFloats | GrowingWholes | GrowingBytes)[];

  constructor(schema: RowsSchema) {
    this.#schema = schema;
    this.#columns = Object.values(schema).map(([, kept]) =>
      kept === "number"
        ? new GrowingFloats()
        : kept === "whole"
          ? new GrowingWholes()
          : new GrowingBytes(),
    );
    this.show();
  }

  get count(): number {
    return this.#columns[0]?.length ?? 0;
  }

  append(table: Table): void {
    if (table.replaceFromNs !== undefined) {
      this.#forgetFrom(table.replaceFromNs);
    }
    const values = this.read(table);
    values.forEach((column, place) => this.#columns[place]?.append(column));
    const correlation = Object.keys(this.#schema).indexOf("correlation");
    this.byCorrelation.append(values[correlation] ?? []);
    this.show();
  }

  /** Makes room for rows that will come. */
  reserve(rows: number): void {
    for (const column of this.#columns) {
      column.reserve(rows);
    }
    if ("correlation" in this.#schema) {
      this.byCorrelation.reserve(rows);
    }
  }

  /** The values of a batch, column after column as in the schema. */
  protected read(table: Table): Values {
    return Object.values(this.#schema).map(([column, kept, isOptional]) => {
      if (isOptional !== undefined && !table.has(column)) {
        return new Uint8Array(table.rows);
      }
      return typeof kept === "string" ? table.numbers(column) : table.codes(column, kept);
    });
  }

  /** Drops the rows that begin at a time or later; the others keep their order. */
  #forgetFrom(timeNs: number): void {
    const times = this.#columns[0]?.view() ?? new Float64Array();
    let kept = times.findIndex((time) => time >= timeNs);
    for (let row = kept; kept >= 0 && row < times.length; row += 1) {
      if ((times[row] ?? 0) < timeNs) {
        this.#columns.forEach((column) => column.set(kept, column.at(row)));
        kept += 1;
      }
    }
    this.#columns.forEach((column) => column.truncate(kept < 0 ? times.length : kept));
  }

  /** Puts one row of a batch in the place of a row, or after the last. */
  protected put(row: number, values: Values, source: number): void {
    this.#columns.forEach((column, place) => {
      const value = values[place]?.[source] ?? 0;
      if (row === column.length) {
        column.push(value);
      } else {
        column.set(row, value);
      }
    });
  }

  /** Lets the columns have what was added. */
  protected show(): void {
    const views = this.#columns.map((column) => column.view());
    Object.assign(
      this,
      Object.fromEntries(Object.keys(this.#schema).map((name, place) => [name, views[place]])),
    );
  }
}

/** A class for the rows of a table, with a typed array for each column of a schema. */
export function rowsOf<const S extends RowsSchema>(schema: S): new () => TableRows & Columns<S> {
  const rows = class extends TableRows {
    constructor() {
      super(schema);
    }
  };
  return rows as unknown as new () => TableRows & Columns<S>;
}
