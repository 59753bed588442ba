import { formatCount } from "../base/format.ts";
import { Signal } from "../base/signal.ts";
import { Scope } from "../base/scope.ts";
import { button, element } from "./dom.ts";

/** A column of a table: what it is called, what it sorts by and what it shows. */
export interface TableColumn<Row> {
  readonly title: string;
  readonly hint: string;
  /** The exact value; undefined, which is unknown, comes last. */
  readonly value: (row: Row) => number | string | undefined;
  readonly text: (row: Row) => string;
  /** A second, smaller line. */
  readonly small?: (row: Row) => string;
  /** What a cell holds in place of the text. */
  readonly fill?: (row: Row, cell: HTMLTableCellElement, scope: Scope) => void;
}

const FIRST_ROWS = 25;

/**
 * A table that sorts by any column; numbers are right of their columns, with units.
 *
 * Rows come sorted by the column `sortedBy`, largest first. Each cell has the exact value in
 * `data-sort`. Texts are taken literally.
 */
export function dataTable<Row>(
  parent: HTMLElement,
  label: string,
  columns: readonly TableColumn<Row>[],
  rows: readonly Row[],
  sortedBy: number,
): Scope {
  const scope = new Scope();
  const frame = element("div", "gpuviz-scroll");
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", label);
  const table = element("table", "gpuviz-table");
  const order = new Signal({ column: sortedBy, isDescending: true });
  const isWhole = new Signal(rows.length <= FIRST_ROWS);
  addHead(scope, table, columns, order);
  const body = table.createTBody();
  frame.append(table);
  scope.append(parent, frame);
  if (!isWhole.value) {
    addMore(scope, parent, rows.length, isWhole);
  }
  const show = (filled: Scope): void => {
    const sorted = sortedRows(rows, columns[order.value.column], order.value.isDescending);
    const shown = isWhole.value ? sorted : sorted.slice(0, FIRST_ROWS);
    body.replaceChildren(...shown.map((row) => tableRow(row, columns, filled)));
  };
  scope.follow(show, order, isWhole);
  return scope;
}

interface Order {
  readonly column: number;
  readonly isDescending: boolean;
}

function addHead<Row>(
  scope: Scope,
  table: HTMLTableElement,
  columns: readonly TableColumn<Row>[],
  order: Signal<Order>,
): void {
  const head = table.createTHead().insertRow();
  const headings = columns.map(({ title, hint }, column) => {
    const heading = element("th", "");
    heading.scope = "col";
    const choose = element("button", "", title);
    choose.type = "button";
    choose.title = hint;
    scope.listen(choose, "click", () => {
      const { value } = order;
      order.value = { column, isDescending: value.column !== column || !value.isDescending };
    });
    heading.append(choose);
    head.append(heading);
    return heading;
  });
  const mark = (): void => {
    headings.forEach((heading, column) => {
      if (column === order.value.column) {
        heading.setAttribute("aria-sort", order.value.isDescending ? "descending" : "ascending");
      } else {
        heading.removeAttribute("aria-sort");
      }
    });
  };
  scope.follow(mark, order);
}

function addMore(scope: Scope, parent: HTMLElement, count: number, isWhole: Signal<boolean>): void {
  const line = element("p", "gpuviz-table__rest");
  line.textContent = `The first ${FIRST_ROWS} of ${formatCount(count)} rows are shown. `;
  const more = button("Show all", "Show all rows of this table");
  more.classList.add("gpuviz-table__more");
  scope.listen(more, "click", () => {
    isWhole.value = true;
    line.remove();
  });
  line.append(more);
  scope.append(parent, line);
}

function tableRow<Row>(
  row: Row,
  columns: readonly TableColumn<Row>[],
  scope: Scope,
): HTMLTableRowElement {
  const created = element("tr", "");
  for (const column of columns) {
    const cell = created.insertCell();
    const value = column.value(row);
    cell.dataset["sort"] = value === undefined ? "" : String(value);
    if (column.fill !== undefined) {
      column.fill(row, cell, scope);
      continue;
    }
    cell.textContent = column.text(row);
    const small = column.small?.(row) ?? "";
    if (small !== "") {
      cell.append(element("div", "gpuviz-table__small", small));
    }
  }
  return created;
}

function sortedRows<Row>(
  rows: readonly Row[],
  column: TableColumn<Row> | undefined,
  isDescending: boolean,
): readonly Row[] {
  if (column === undefined) {
    return rows;
  }
  const sign = isDescending ? -1 : 1;
  return [...rows].sort((left, right) => {
    const [before, after] = [column.value(left), column.value(right)];
    if (before === undefined || after === undefined) {
      return Number(before === undefined) - Number(after === undefined);
    }
    return sign * (before < after ? -1 : before > after ? 1 : 0);
  });
}
