import { formatCount } from "../base/format.ts";
import { Signal } from "../base/signal.ts";
import type { Scope } from "../base/scope.ts";
import { actionButton, element, withCode } from "./dom.ts";

/** A column of a table: what it is called, what it sorts by and what it shows. */
export interface TableColumn<Row> {
  readonly title: string;
  readonly hint: string;
  /** The exact value; undefined, which is unknown, comes last. */
  readonly value: (row: Row) => number | string | undefined;
  /** What it sorts by, such as the size of a change; the value if omitted. */
  readonly order?: TableColumn<Row>["value"];
  /** The text shown and searched; the value itself if omitted. */
  readonly text?: (row: Row) => string;
  /** A second, smaller line. */
  readonly small?: (row: Row) => string;
  /** Whether a bar behind the text shows the value, as long as the cell for the largest. */
  readonly hasBar?: boolean;
  /** Fills a cell with elements in place of the text; returns what takes in a newer row. */
  readonly fill?: (row: () => Row, cell: HTMLTableCellElement, scope: Scope) => () => void;
}

/** What is said of a table as a whole. */
interface TableOptions<Row> {
  readonly label: string;
  /** The column by which rows come sorted. */
  readonly sortedBy: number;
  /** Whether the smallest comes first. */
  readonly isAscending?: boolean;
  /** How many rows are shown until a reader asks for all. */
  readonly firstRows?: number;
  /** What a row is about: the same before and after the numbers in it have changed. */
  readonly keyOf: (row: Row) => string;
  /** What is said in place of a table without rows. */
  readonly none?: string;
  /** What rows must contain to be shown. */
  readonly filter?: Signal<string>;
  /** The values in the first column of the rows that come first, and are marked. */
  readonly marked?: Signal<readonly string[]>;
  /** The class of a row; none where it is empty. */
  readonly classOf?: (row: Row) => string;
  /** The keys of the rows that are followed by their parts. */
  readonly opened?: Signal<readonly string[]>;
  readonly partsOf?: (row: Row) => readonly Row[];
}

interface ShownRow<Row> {
  readonly element: HTMLTableRowElement;
  /** Takes in a newer row, and the largest value of each column that has bars. */
  readonly update: (row: Row, largest: readonly number[]) => void;
}

/** What the tables in these frames have, as CSV. */
const texts = new WeakMap<HTMLElement, () => string>();

/** All rows of the table in a frame, in the order shown, with exact numbers. */
export function csvOf(frame: HTMLElement): string {
  return texts.get(frame)?.() ?? "";
}

/**
 * A table that sorts by any column; numbers are right of their columns, with units.
 *
 * Returns what shows rows, and others later.
 * Each cell has the exact value in `data-sort`. Texts are taken literally. What a reader did to it
 * stays when newer rows are shown: the order, what is open, what has the focus.
 */
export function dataTable<Row>(
  scope: Scope,
  parent: HTMLElement,
  columns: readonly TableColumn<Row>[],
  {
    label,
    sortedBy,
    isAscending = false,
    firstRows = 25,
    keyOf,
    none = "",
    filter = new Signal(""),
    marked = new Signal([]),
    classOf = () => "",
    opened = new Signal([]),
    partsOf = () => [],
  }: TableOptions<Row>,
): (rows: readonly Row[]) => void {
  const frame = element("div", "gpuviz-scroll", { tabIndex: 0, role: "region", ariaLabel: label });
  const table = element("table", "gpuviz-table");
  const order = new Signal({ column: sortedBy, isDescending: !isAscending });
  addHead(scope, table, columns, order);
  const body = table.createTBody();
  frame.append(table);
  const rest = element("p", "gpuviz-table__rest");
  const more = actionButton(scope, "Show all", "Show all rows of this table", () => {
    isWhole = true;
    show();
  });
  more.classList.add("gpuviz-table__more");
  const nothing = element("p", "gpuviz-section__hint");
  nothing.append(...withCode(none));
  scope.append(parent, frame, rest, nothing);
  const known = new Map<string, ShownRow<Row>>();
  let rows: readonly Row[] = [];
  let isWhole = false;
  const inOrder = (some: readonly Row[]): readonly Row[] =>
    sortedRows(some, columns[order.value.column], order.value.isDescending);
  const isMarked = (row: Row): boolean => marked.value.includes(String(columns[0]?.value(row)));
  const sortedNow = (): readonly Row[] => {
    const sorted = inOrder(matching(rows, columns, filter.value));
    return [...sorted.filter(isMarked), ...sorted.filter((row) => !isMarked(row))];
  };
  texts.set(frame, () => csv(sortedNow(), columns));
  const show = (): void => {
    const sorted = sortedNow();
    const largest = columns.map(({ hasBar = false, value }) =>
      hasBar ? rows.reduce((most, row) => Math.max(most, Number(value(row) ?? 0)), 0) : 0,
    );
    const first = isWhole ? sorted : sorted.slice(0, firstRows);
    const withParts = first.flatMap((row) =>
      opened.value.includes(keyOf(row)) ? [row, ...inOrder(partsOf(row))] : [row],
    );
    const shown = withParts.map((row) => {
      const key = keyOf(row);
      const there = known.get(key) ?? shownRow(row, columns, scope);
      known.set(key, there);
      there.update(row, largest);
      there.element.className = classOf(row);
      there.element.classList.toggle("gpuviz-table__marked", isMarked(row));
      return there.element;
    });
    replaceRows(body, shown);
    frame.hidden = rows.length === 0;
    nothing.hidden = !frame.hidden;
    rest.replaceChildren();
    if (first.length < sorted.length) {
      rest.append(`The first ${firstRows} of ${formatCount(sorted.length)} rows are shown. `, more);
    } else if (sorted.length < rows.length) {
      rest.append(`${formatCount(sorted.length)} of ${formatCount(rows.length)} rows match.`);
    }
  };
  scope.watch(show, order, filter, opened, marked);
  return (newer) => {
    rows = newer;
    show();
  };
}

function textOf<Row>({ value, text }: TableColumn<Row>, row: Row): string {
  return text?.(row) ?? String(value(row) ?? "");
}

/** The rows that contain a text in any column. */
function matching<Row>(
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  query: string,
): readonly Row[] {
  return query === ""
    ? rows
    : rows.filter((row) =>
        columns.some((column) => textOf(column, row).toLowerCase().includes(query)),
      );
}

/** Rows as CSV, with the exact value of each column. */
export function csv<Row>(
  rows: readonly Row[],
  columns: readonly Pick<TableColumn<Row>, "title" | "value">[],
): string {
  const cell = (value: unknown): string => `"${String(value ?? "").replaceAll('"', '""')}"`;
  const lines = rows.map((row) => columns.map(({ value }) => cell(value(row))));
  return [columns.map(({ title }) => cell(title)), ...lines]
    .map(
      (line) => `${line}
`,
    )
    .join("");
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
    const heading = element("th", "", { scope: "col" });
    const choose = element("button", "", { textContent: title, type: "button", title: hint });
    scope.listen(choose, "click", () => {
      const { value } = order;
      order.value = { column, isDescending: value.column !== column || !value.isDescending };
    });
    heading.append(choose);
    head.append(heading);
    return heading;
  });
  scope.follow(() => {
    const direction = order.value.isDescending ? "descending" : "ascending";
    headings.forEach((heading, column) => {
      heading.ariaSort = column === order.value.column ? direction : null;
    });
  }, order);
}

function shownRow<Row>(
  first: Row,
  columns: readonly TableColumn<Row>[],
  scope: Scope,
): ShownRow<Row> {
  const created = element("tr", "");
  let row = first;
  const updates = columns.map((column) => {
    const cell = created.insertCell();
    const fill = column.fill ?? fillWithText(column);
    const update = fill(() => row, cell, scope);
    return (largest: number) => {
      const value = column.value(row);
      cell.dataset["sort"] = String(value ?? "");
      if (column.hasBar === true) {
        cell.className = "gpuviz-table__bar";
        cell.style.setProperty("--gpuviz-share", String(Number(value ?? 0) / Math.max(largest, 1)));
      }
      update();
    };
  });
  return {
    element: created,
    update: (newer, largest) => {
      row = newer;
      updates.forEach((update, column) => update(largest[column] ?? 0));
    },
  };
}

/** Fills a cell with its text and the smaller line below; it is left alone while they are equal. */
function fillWithText<Row>(column: TableColumn<Row>): NonNullable<TableColumn<Row>["fill"]> {
  const { small = () => "" } = column;
  return (row, cell) => {
    let shown = "";
    return () => {
      const [large, little] = [textOf(column, row()), small(row())];
      if (shown !== large + little) {
        shown = large + little;
        cell.textContent = large;
        if (little !== "") {
          cell.append(element("div", "gpuviz-table__small", little));
        }
      }
    };
  };
}

/** Shows rows in an order. Few are moved: one that is, while a button in it is held, gets no click. */
function replaceRows(body: HTMLTableSectionElement, rows: readonly HTMLTableRowElement[]): void {
  const focused = document.activeElement;
  const shown = new Set(rows);
  for (const row of [...body.rows]) {
    if (!shown.has(row)) {
      row.remove();
    }
  }
  let next = body.firstElementChild;
  for (const row of rows) {
    if (row === next) {
      next = row.nextElementSibling;
    } else {
      body.insertBefore(row, next);
    }
  }
  if (body.contains(focused)) {
    (focused as HTMLElement).focus({ preventScroll: true });
  }
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
  const { value, order = value } = column;
  return [...rows].sort((left, right) => {
    const [before, after] = [order(left), order(right)];
    if (before === undefined || after === undefined) {
      return Number(before === undefined) - Number(after === undefined);
    }
    return sign * (before < after ? -1 : before > after ? 1 : 0);
  });
}
