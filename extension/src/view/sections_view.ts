import type { Scope } from "../base/scope.ts";
import type { Conclusion } from "../model/conclusions.ts";
import type { Bar, Cell, Line } from "../model/sections.ts";
import { conclusionsList, firstConclusions, link, type Lead } from "./conclusions_list.ts";
import { dataTable, type TableColumn } from "./data_table.ts";
import { element, withCode } from "./dom.ts";

const MOST_LINES = 2;

/** The kinds of lines that go on with what the line before has begun. */
const GOES_ON: Readonly<Record<string, readonly string[]>> = {
  table: ["row", "more"],
  facts: ["facts"],
  numbers: ["numbers"],
  figures: ["figures"],
  items: ["items", "more"],
};

interface TableRow {
  readonly key: string;
  readonly line: Line;
  readonly more: Line | undefined;
}

/** Draws the lines of a section until the scope ends. */
export function drawLines(
  scope: Scope,
  parent: HTMLElement,
  lines: readonly Line[],
  said: readonly Conclusion[],
  lead: Lead,
): void {
  const rest = [...lines];
  for (let first = rest.shift(); first !== undefined; first = rest.shift()) {
    const goesOn = GOES_ON[first.kind] ?? [];
    const end = rest.findIndex(({ kind }) => !goesOn.includes(kind));
    const others = rest.splice(0, end < 0 ? rest.length : end);
    if (first.kind === "table") {
      drawTable(scope, parent, first, withMore(others), lead);
    } else {
      const rows = withMore([first, ...others]);
      scope.append(parent, drawn(scope, first, rows, said, lead));
    }
  }
}

function drawn(
  scope: Scope,
  first: Line,
  rows: readonly TableRow[],
  said: readonly Conclusion[],
  lead: Lead,
): HTMLElement {
  switch (first.kind) {
    case "first":
      return firstConclusions(
        scope,
        said.filter(({ list }) => list === "findings"),
        lead,
      );
    case "findings":
    case "hazards":
      return conclusionsList(
        scope,
        said.filter(({ list }) => list === first.kind),
        lead,
      );
    case "heading":
      return filled(element("h4", ""), first.cells[0]);
    case "facts":
      return listOf("dl", "gpuviz-facts", rows, ({ line }) =>
        line.cells.map((cell, at) => filled(element(at === 0 ? "dt" : "dd", ""), cell)),
      );
    case "numbers":
      return listOf("dl", "gpuviz-number-list", rows, ({ line }) => [number(line)]);
    case "figures":
      return fewLines(
        scope,
        listOf("ul", "gpuviz-headline", rows, ({ line }) => [figure(scope, line, lead)]),
      );
    case "items":
      return listOf("ul", "gpuviz-items", rows, ({ line, more }) => [
        filled(element("li", ""), line.cells[0], more && linesOf(more)),
      ]);
    default: {
      const paragraph = element("p", first.kind === "hint" ? "gpuviz-section__hint" : "");
      paragraph.append(...led(scope, first, lead));
      return paragraph;
    }
  }
}

/** A table that sorts by the numbers of its columns. */
function drawTable(
  scope: Scope,
  parent: HTMLElement,
  { cells, label }: Line,
  rows: readonly TableRow[],
  lead: Lead,
): void {
  const bars = rows.some(({ line }) => line.bar !== undefined) ? cells.length - 1 : -1;
  const columns = cells.map((heading, at): TableColumn<TableRow> => {
    const isNumeric = rows.some(({ line }) => line.cells[at]?.value !== undefined);
    return {
      title: heading.text,
      hint: "",
      value: ({ line }) => {
        if (at === bars) {
          return line.bar && line.bar.before + line.bar.added;
        }
        const { value, text, code, remark } = line.cells[at] ?? NOTHING;
        return isNumeric ? value : [text, code, remark].filter(Boolean).join(" ");
      },
      fill: (row, cell) => {
        const { line, more } = row();
        if (at === bars) {
          cell.className = "gpuviz-table__drawn";
          cell.append(...(line.bar === undefined ? [] : [bar(line.bar)]));
        } else if (at === 0) {
          cell.append(...led(scope, line, lead));
          if (more !== undefined) {
            const details = element("details", "");
            const summary = element("summary", "");
            summary.append(...cell.childNodes);
            details.append(summary, linesOf(more));
            cell.append(details);
          }
        } else {
          filled(cell, line.cells[at]);
        }
        return () => undefined;
      },
    };
  });
  const options = { label, sortedBy: -1, firstRows: Infinity };
  dataTable(scope, parent, columns, { ...options, keyOf: ({ key }) => key })(rows);
}

const NOTHING: Cell = { text: "", value: undefined, code: "", remark: "", hover: "" };

/** Joins each line with the one that has more of it. */
function withMore(lines: readonly Line[]): TableRow[] {
  return lines.flatMap((line, at) => {
    const next = lines[at + 1];
    const more = next?.kind === "more" ? next : undefined;
    return line.kind === "more" ? [] : [{ key: String(at), line, more }];
  });
}

/** The contents of the first cell of a line, as a link if the line leads to a place. */
function led(scope: Scope, { cells: [cell = NOTHING], place }: Line, lead: Lead): Node[] {
  if (place === undefined) {
    return contents(cell);
  }
  const remark = contents({ ...NOTHING, remark: cell.remark });
  return [link(scope, cell.text, () => lead(place)), text(" "), ...remark];
}

function figure(scope: Scope, line: Line, lead: Lead): HTMLElement {
  const [name = NOTHING, value = NOTHING, detail = NOTHING] = line.cells;
  const { place = {} } = line;
  const shown = link(scope, `${name.text} `, () => lead(place));
  shown.className = "gpuviz-headline__figure";
  // Where there is no room, the detail is cut.
  shown.title = [name.hover, detail.text].filter(Boolean).join("\n");
  shown.append(element("strong", "", value.text));
  if (detail.text !== "") {
    shown.append(" ", element("span", "gpuviz-headline__detail", detail.text));
  }
  const item = element("li", "");
  item.append(shown);
  return item;
}

/**
 * Leaves out as many details, the longest first, as it takes for figures to need no more lines.
 *
 * Where the figures alone take more than two lines, all have their details.
 */
function fewLines(scope: Scope, list: HTMLElement): HTMLElement {
  const details = [...list.querySelectorAll<HTMLElement>(".gpuviz-headline__detail")];
  const linesWith = (shown: readonly HTMLElement[]): number => {
    details.forEach((detail) => {
      detail.hidden = !shown.includes(detail);
    });
    return new Set([...list.children].map((item) => item.getBoundingClientRect().top)).size;
  };
  const fit = (): void => {
    const least = linesWith([]);
    let lines = linesWith(details);
    if (least > MOST_LINES) {
      return;
    }
    const widths = new Map(details.map((detail) => [detail, detail.offsetWidth]));
    const widthOf = (detail: HTMLElement): number => widths.get(detail) ?? 0;
    const longest = details.toSorted((one, other) => widthOf(other) - widthOf(one));
    for (let left = 1; lines > least; left += 1) {
      lines = linesWith(longest.slice(left));
    }
  };
  const observer = new ResizeObserver(fit);
  observer.observe(list);
  scope.defer(() => observer.disconnect());
  return list;
}

function number({ cells: [name = NOTHING, value = NOTHING, detail = NOTHING] }: Line): HTMLElement {
  const root = element("div", "gpuviz-number");
  root.append(
    element("dt", "", name.text),
    element("dd", "gpuviz-number__value", value.text),
    element("dd", "gpuviz-number__detail", detail.text),
  );
  return root;
}

function listOf(
  tag: "dl" | "ul",
  className: string,
  rows: readonly TableRow[],
  itemsOf: (row: TableRow) => readonly HTMLElement[],
): HTMLElement {
  const list = element(tag, className);
  list.append(...rows.flatMap(itemsOf));
  return list;
}

function linesOf({ cells }: Line): HTMLElement {
  const list = element("ul", "gpuviz-items");
  list.append(...cells.map((cell) => filled(element("li", ""), cell)));
  return list;
}

function filled(
  root: HTMLElement,
  cell: Cell = NOTHING,
  ...more: (Node | undefined)[]
): HTMLElement {
  root.append(...contents(cell), ...more.filter((each) => each !== undefined));
  if (cell.remark === "") {
    root.title = cell.hover;
  }
  return root;
}

function contents({ text: said, code, remark, hover }: Cell): Node[] {
  const parts: Node[][] = [
    said === "" ? [] : withCode(said).map((each) => (typeof each === "string" ? text(each) : each)),
    code === "" ? [] : [element("code", "gpuviz-code", code)],
    remark === "" ? [] : [element("span", "gpuviz-place", { textContent: remark, title: hover })],
  ];
  return parts
    .filter(({ length }) => length > 0)
    .flatMap((part, at) => (at === 0 ? part : [text(" "), ...part]));
}

function text(value: string): Text {
  return document.createTextNode(value);
}

function bar({ before, added, responsible }: Bar): HTMLElement {
  const root = element("div", "gpuviz-bar");
  for (const [part, share] of Object.entries({ before, [responsible]: added })) {
    const drawn = element("div", `gpuviz-bar__${part}`);
    drawn.style.width = `${share * 100}%`;
    root.append(drawn);
  }
  return root;
}
