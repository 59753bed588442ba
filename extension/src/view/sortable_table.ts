import type { Scope } from "../base/scope.ts";

/** Lets each column's heading sort the table; the first click shows the largest first. */
export function makeSortable(scope: Scope, table: HTMLTableElement): void {
  const headings = [...table.querySelectorAll<HTMLTableCellElement>("thead th")];
  headings.forEach((heading, column) => {
    const choose = heading.querySelector("button") ?? heading;
    scope.listen(choose, "click", () => {
      const descending = heading.getAttribute("aria-sort") !== "descending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortRows(table, column, descending);
    });
  });
}

function sortRows(table: HTMLTableElement, column: number, descending: boolean): void {
  const body = table.tBodies[0];
  const keys = new Map(
    [...(body?.rows ?? [])].map((row) => [row, row.cells[column]?.dataset["sort"] ?? ""]),
  );
  const compare = (left: string, right: string): number => {
    const difference = Number(left) - Number(right);
    return Number.isNaN(difference) ? left.localeCompare(right) : difference;
  };
  const sorted = [...keys].toSorted(
    ([, left], [, right]) => compare(left, right) * (descending ? -1 : 1),
  );
  body?.append(...sorted.map(([row]) => row));
}
