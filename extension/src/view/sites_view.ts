import { counted, formatBytes } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
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
import { actionButton, element } from "./dom.ts";
import { icicleView } from "./icicle_view.ts";
import { appendCallSite, bytesColumn, colourKey, countColumn, showLink } from "./table_columns.ts";
import type { ShowWindow } from "./tables_view.ts";
import type { TimeRange } from "./time_window.ts";

const AT_THE_PEAK = 1;
const MOST_STACKS = 4;
const MEASURES: Readonly<Record<HoldingName, string>> = {
  atPeak: "allocated at the peak",
  atEnd: "still allocated at the end",
  inAll: "allocated in all",
};
type Holdings = ReadonlyMap<number, StackHoldings>;

const SHAPES = ["Table", "Icicle"] as const;

/** The lines that allocated, as a table or as an icicle of their call stacks. */
export function sitesView(scope: Scope, parent: HTMLElement, chart: ChartContext): ShowWindow {
  const shape = new Signal<(typeof SHAPES)[number]>("Table");
  let window: TimeRange | undefined;
  const bar = element("div", "gpuviz-controls");
  const place = element("div", "gpuviz-sites");
  scope.append(parent, bar, place);
  const choices = SHAPES.map((name) => {
    const choice = actionButton(scope, name, `Show the lines as ${name.toLowerCase()}`, () => {
      shape.value = name;
    });
    bar.append(choice);
    return choice;
  });
  let show: ShowWindow = () => undefined;
  scope.follow((shown) => {
    choices.forEach((choice, index) =>
      choice.setAttribute("aria-pressed", String(SHAPES[index] === shape.value)),
    );
    show = (shape.value === "Table" ? sitesTable : sitesIcicle)(shown, place, chart);
    show(window);
  }, shape);
  return (newer) => {
    window = newer;
    show(window);
  };
}

/** The lines that allocated. */
export function sitesTable(scope: Scope, parent: HTMLElement, chart: ChartContext): ShowWindow {
  let holdings: Holdings = new Map();
  const held = (title: string, hint: string, name: HoldingName): TableColumn<SiteRow> =>
    bytesColumn(
      title,
      hint,
      (row) => row[name].bytes,
      (row) => counted(row[name].count, "block"),
    );
  const columns: TableColumn<SiteRow>[] = [
    lineColumn(chart, () => holdings),
    held("At the peak", "Bytes allocated at the peak", "atPeak"),
    held("At the end", "Bytes still allocated at the end", "atEnd"),
    bytesColumn(
      "In total",
      "Bytes allocated during the recording, or the time shown",
      (row) => row.inAll.bytes,
    ),
    countColumn(
      "Allocations",
      "Allocations during the recording, or the time shown",
      (row) => row.inAll.count,
    ),
  ];
  const show = dataTable(scope, parent, columns, {
    label: "Lines that allocated",
    sortedBy: AT_THE_PEAK,
    keyOf: ({ callSite }) => callSite.site,
    filter: chart.filter,
    none: "No memory was allocated.",
  });
  return (window) => {
    holdings = stackHoldings(chart.timeline, window);
    show(siteRows(holdings, chart.stacks, chart.timeline.blocks));
  };
}

/** A line with its source; opened, it shows the call stacks that lead to it. */
function lineColumn(chart: ChartContext, holdings: () => Holdings): TableColumn<SiteRow> {
  return {
    title: "Line",
    hint: "The innermost line outside installed packages",
    value: (row) => row.callSite.site,
    text: ({ callSite }) => `${callSite.source}\n${callSite.site}`,
    fill: (row, cell, scope) => {
      const { callSite } = row();
      const details = element("details", "");
      const summary = element("summary", "");
      scope.follow(() => {
        summary.querySelector(".gpuviz-key")?.remove();
        const colour = chart.grouping.colourOfStack(row().stacks[0] ?? 0);
        summary.prepend(...(colour === undefined ? [] : [colourKey(colour)]));
      }, chart.grouping.categories);
      appendCallSite(summary, { ...callSite, source: callSite.source || "(source text unknown)" });
      const link = showLink(scope, chart, "Show its largest block in the charts", "", () => ({
        kind: "block",
        block: row().largest,
      }));
      const stacks = element("div", "");
      details.append(summary, link, stacks);
      cell.append(details);
      const update = (): void => {
        if (details.open) {
          stacks.replaceChildren(...stacksOf(row(), chart, holdings()));
        }
      };
      scope.listen(details, "toggle", update);
      return update;
    },
  };
}

function stacksOf({ stacks }: SiteRow, chart: ChartContext, holdings: Holdings): HTMLElement[] {
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
      appendCallSite(item, { source: frame.source, site: siteText(frame) });
      list.append(item);
    }
    return [element("p", "gpuviz-stack__title", title), list];
  });
  const hidden = stacks.length - MOST_STACKS;
  const more = `And ${counted(hidden, "more call stack")}.`;
  return [...shown, ...(hidden > 0 ? [element("p", "", more)] : [])];
}

function sitesIcicle(scope: Scope, parent: HTMLElement, chart: ChartContext): ShowWindow {
  const bar = element("div", "gpuviz-controls");
  const label = element("label", "", "Bytes ");
  const choice = element("select", "gpuviz-select");
  choice.append(...Object.entries(MEASURES).map(([name, text]) => new Option(text, name)));
  label.append(choice);
  bar.append(label);
  scope.append(parent, bar);
  let holdings: Holdings = new Map();
  const show = scope.follow((shown) => {
    const name = choice.value in MEASURES ? (choice.value as HoldingName) : "atPeak";
    const bytesOf = new Map([...holdings].map(([stack, held]) => [stack, held[name].bytes]));
    icicleView(shown, parent, chart, bytesOf, MEASURES[name]);
  });
  scope.listen(choice, "change", show);
  return (window) => {
    holdings = stackHoldings(chart.timeline, window);
    show();
  };
}
