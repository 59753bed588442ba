import { GrowingColumns, type Kept, type Kinds } from "../base/growing.ts";
import { RowsByKey } from "../base/rows_by_key.ts";
import type { ArrowTable } from "./arrow.ts";

/** The storage of a column's values: doubles, integers, or positions of texts. */
type KeptAs = "number" | "whole" | readonly string[];

/**
 * Columns of a table and their storage, by the property's name.
 *
 * Columns that older files lack are optional, and 0 if missing. In tables whose rows are replaced,
 * the first column must be their time.
 */
export type RowsSchema = Readonly<
  Record<string, readonly [column: string, kept: KeptAs, isOptional?: "optional"]>
>;

type KindOf<K> = K extends keyof Kinds ? Kinds[K] : Kinds["byte"];
type Columns<S extends RowsSchema> = { readonly [N in keyof S]: KindOf<S[N][1]> };

/** The rows of a table that arrive in batches. */
class TableRows extends GrowingColumns<string> {
  /** The rows by correlation id, for tables that have one. */
  readonly byCorrelation = new RowsByKey();
  /** How often later rows have replaced earlier ones. */
  replacements = 0;
  readonly #schema: RowsSchema;

  constructor(schema: RowsSchema) {
    const kinds = Object.entries(schema).map(([name, [, kept]]) => [
      name,
      typeof kept === "string" ? kept : "byte",
    ]);
    super(Object.fromEntries(kinds) as Record<string, Kept>);
    this.#schema = schema;
  }

  append(table: ArrowTable): void {
    if (table.replaceFromNs !== undefined) {
      this.#forgetFrom(table.replaceFromNs);
    }
    const values = this.read(table);
    for (const [name, column] of Object.entries(this.columns)) {
      column.append(values[name] ?? []);
    }
    this.byCorrelation.append(values["correlation"] ?? []);
    this.show();
  }

  override reserve(rows: number): void {
    super.reserve(rows);
    if ("correlation" in this.#schema) {
      this.byCorrelation.reserve(rows);
    }
  }

  /** The values of a batch. */
  protected read(table: ArrowTable): Readonly<Record<string, ArrayLike<number>>> {
    const columns = Object.entries(this.#schema).map(([name, [column, kept, isOptional]]) => {
      if (isOptional !== undefined && !table.has(column)) {
        return [name, new Uint8Array(table.rows)] as const;
      }
      const values = typeof kept === "string" ? table.numbers(column) : table.codes(column, kept);
      return [name, values] as const;
    });
    return Object.fromEntries(columns);
  }

  /** Removes the rows that begin at a time or later; the others keep their order. */
  #forgetFrom(timeNs: number): void {
    this.replacements += 1;
    const columns = Object.values(this.columns);
    const times = columns[0]?.view() ?? new Float64Array();
    let kept = times.findIndex((time) => time >= timeNs);
    for (let row = kept; kept >= 0 && row < times.length; row += 1) {
      if ((times[row] ?? 0) < timeNs) {
        columns.forEach((column) => column.set(kept, column.at(row)));
        kept += 1;
      }
    }
    this.truncate(kept < 0 ? times.length : kept);
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
