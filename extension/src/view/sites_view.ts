import { counted, formatBytes } from "../base/format.ts";
import { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import { siteText } from "../model/stacks.ts";
import {
  siteRows,
  stackHoldings,
  type HoldingName,
  type SiteRow,
  type StackHoldings,
} from "../model/site_rows.ts";
import type { ChartContext } from "./chart_context.ts";
import { dataTable, type TableColumn } from "./data_table.ts";
import { button, element } from "./dom.ts";
import { icicleView } from "./icicle_view.ts";
import { appendPlace, bytesColumn, countColumn, showInCharts, showLink } from "./table_columns.ts";

const AT_THE_PEAK = 1;
const MOST_STACKS = 4;
const MEASURES: Readonly<Record<HoldingName, string>> = {
  atPeak: "allocated at the peak",
  atEnd: "still allocated at the end",
  inAll: "allocated in all",
};
const SHAPES = ["Table", "Icicle"] as const;

/** The lines that allocated, as a table or as an icicle of their call stacks. */
export function sitesView(parent: HTMLElement, chart: ChartContext): Scope {
  const scope = new Scope();
  const holdings = stackHoldings(chart.timeline);
  const shape = new Signal<(typeof SHAPES)[number]>("Table");
  const bar = element("div", "gpuviz-controls");
  const place = element("div", "gpuviz-sites");
  scope.append(parent, bar, place);
  const choices = SHAPES.map((name) => {
    const choice = button(name, `Show the lines as ${name.toLowerCase()}`);
    scope.listen(choice, "click", () => {
      shape.value = name;
    });
    bar.append(choice);
    return choice;
  });
  scope.follow((shown) => {
    choices.forEach((choice, index) =>
      choice.setAttribute("aria-pressed", String(SHAPES[index] === shape.value)),
    );
    const view = shape.value === "Table" ? sitesTable : sitesIcicle;
    shown.use(view(place, chart, holdings));
  }, shape);
  return scope;
}

function sitesTable(
  parent: HTMLElement,
  chart: ChartContext,
  holdings: ReadonlyMap<number, StackHoldings>,
): Scope {
  const rows = siteRows(holdings, chart.stacks, chart.timeline.blocks);
  const held = (title: string, hint: string, name: HoldingName): TableColumn<SiteRow> =>
    bytesColumn(
      title,
      hint,
      (row) => row[name].bytes,
      (row) => counted(row[name].count, "block"),
    );
  const columns: TableColumn<SiteRow>[] = [
    lineColumn(chart, holdings),
    held("At the peak", "Bytes allocated at the peak", "atPeak"),
    held("At the end", "Bytes still allocated at the end", "atEnd"),
    bytesColumn("In total", "Bytes allocated during the recording", (row) => row.inAll.bytes),
    countColumn("Allocations", "Allocations during the recording", (row) => row.inAll.count),
  ];
  return dataTable(parent, "Call sites of allocations", columns, rows, AT_THE_PEAK);
}

/** A line with its source; opened, it shows the call stacks that lead to it. */
function lineColumn(
  chart: ChartContext,
  holdings: ReadonlyMap<number, StackHoldings>,
): TableColumn<SiteRow> {
  return {
    title: "Line",
    hint: "The innermost line outside installed packages",
    value: (row) => row.place.site,
    text: (row) => row.place.site,
    fill: (row, cell, scope) => {
      const details = element("details", "");
      const summary = element("summary", "");
      appendPlace(summary, { ...row.place, source: row.place.source || "(source text unknown)" });
      details.append(summary);
      scope.listen(details, "toggle", () => {
        if (details.open && details.childElementCount === 1) {
          details.append(...stacksOf(row, chart, holdings, scope));
        }
      });
      cell.append(details);
    },
  };
}

function stacksOf(
  { stacks, largest }: SiteRow,
  chart: ChartContext,
  holdings: ReadonlyMap<number, StackHoldings>,
  scope: Scope,
): HTMLElement[] {
  const shown = stacks.slice(0, MOST_STACKS).flatMap((stack, index) => {
    const frames = chart.stacks.framesOf(stack);
    if (frames.length === 0) {
      return [element("p", "gpuviz-stack__title", "No call stack was captured.")];
    }
    const bytes = holdings.get(stack)?.atPeak.bytes ?? 0;
    const title = `Call stack ${index + 1} of ${stacks.length}, ${formatBytes(bytes)} at the peak, innermost call first`;
    const list = element("ol", "gpuviz-stack");
    for (const frame of frames) {
      const item = element("li", "");
      appendPlace(item, { source: frame.source, site: siteText(frame) });
      list.append(item);
    }
    return [element("p", "gpuviz-stack__title", title), list];
  });
  const hidden = stacks.length - MOST_STACKS;
  const more = `And ${counted(hidden, "more call stack")}.`;
  const link = showLink(scope, "Show its largest block in the charts", "", () =>
    showInCharts(chart, { kind: "block", block: largest }),
  );
  return [link, ...shown, ...(hidden > 0 ? [element("p", "", more)] : [])];
}

function sitesIcicle(
  parent: HTMLElement,
  chart: ChartContext,
  holdings: ReadonlyMap<number, StackHoldings>,
): Scope {
  const scope = new Scope();
  const bar = element("div", "gpuviz-controls");
  const label = element("label", "", "Bytes ");
  const choice = element("select", "gpuviz-select");
  for (const [name, text] of Object.entries(MEASURES)) {
    const option = element("option", "", text);
    option.value = name;
    choice.append(option);
  }
  label.append(choice);
  bar.append(label);
  scope.append(parent, bar);
  const show = scope.follow((shown) => {
    const name = choice.value in MEASURES ? (choice.value as HoldingName) : "atPeak";
    const bytesOf = new Map([...holdings].map(([stack, held]) => [stack, held[name].bytes]));
    shown.use(icicleView(parent, chart, bytesOf, MEASURES[name]));
  });
  scope.listen(choice, "change", show);
  return scope;
}
