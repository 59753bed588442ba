import type { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import type { LineRow } from "../model/line_rows.ts";
import { shortFilename } from "../model/stacks.ts";
import type { ChartContext } from "./chart_context.ts";
import { dataTable, type TableColumn } from "./data_table.ts";
import { actionButton, element } from "./dom.ts";
import { figureColumns, figuresOf, sourceView, usedFigures } from "./source_view.ts";
import { colourKey, showLink } from "./table_columns.ts";
import type { ShowWindow, TimeRange } from "./time_window.ts";

const AT_THE_PEAK = 1;

/** The lines of the program with what each costs; a click on one shows the source around it. */
export function linesView(scope: Scope, parent: HTMLElement, chart: ChartContext): ShowWindow {
  /** The site of the line whose source is shown; empty while the table is. */
  const opened = new Signal("");
  const place = element("div", "gpuviz-lines");
  scope.append(parent, place);
  let window: TimeRange | undefined;
  let show: ShowWindow = () => undefined;
  const close = (): void => {
    const { value: site } = opened;
    opened.value = "";
    const links = [...place.querySelectorAll<HTMLElement>(".gpuviz-link")];
    (links.find(({ title }) => title === site) ?? parent).focus();
  };
  scope.follow((shown) => {
    const isTable = opened.value === "";
    show = isTable
      ? linesTable(shown, place, chart, opened)
      : openedLine(shown, place, chart, opened.value, close);
    show(window);
  }, opened);
  scope.listen(parent, "keydown", (event) => {
    if (event.key === "Escape" && opened.value !== "") {
      event.stopPropagation();
      close();
    }
  });
  scope.watch(() => {
    opened.value = chart.marked.value.length === 0 ? opened.value : "";
  }, chart.marked);
  return (newer) => {
    window = newer;
    show(window);
  };
}

function linesTable(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
  opened: Signal<string>,
): ShowWindow {
  /** The names of the figures that any line has; others have no column. */
  const used = new Signal("");
  let showRows: (rows: readonly LineRow[]) => void = () => undefined;
  scope.follow((table) => {
    const figures = figureColumns<LineRow>(chart, figuresOf(used.value.split(" ")));
    showRows = dataTable(table, parent, [lineColumn(chart, opened), ...figures], {
      label: "Lines",
      sortedBy: AT_THE_PEAK,
      keyOf: ({ callSite }) => callSite.site,
      filter: chart.filter,
      marked: chart.marked,
      none: "No line of the program did anything here.",
    });
  }, used);
  return (window) => {
    used.value = usedFigures(chart.linesIn(undefined)).join(" ");
    showRows(chart.linesIn(window));
  };
}

function lineColumn(chart: ChartContext, opened: Signal<string>): TableColumn<LineRow> {
  return {
    title: "Line",
    hint: "The innermost line of the program's own files; a click shows the source around it",
    value: (row) => row.callSite.site,
    text: ({ callSite }) => `${callSite.source}\n${callSite.site}`,
    fill: (row, cell, scope) => {
      const { callSite, frame, stack } = row();
      const line = element("div", "gpuviz-lines__line");
      cell.append(line);
      scope.follow(() => {
        line.querySelector(".gpuviz-key")?.remove();
        const colour = chart.grouping.colourOfStack(stack);
        line.prepend(...(colour === undefined ? [] : [colourKey(colour)]));
      }, chart.grouping.categories);
      if (frame === undefined || frame.filename === "") {
        line.append(callSite.site);
      } else {
        const open = actionButton(scope, "", callSite.site, () => {
          opened.value = callSite.site;
        });
        open.className = "gpuviz-link";
        open.append(
          `${chart.stacks.beforeLineOf(stack)}${shortFilename(frame.filename, 1)}:${frame.line} `,
          element("code", "gpuviz-code", callSite.source.trim() || frame.name),
        );
        line.append(open);
      }
      return () => undefined;
    },
  };
}

/** The source around a line, and a way to its largest block. */
function openedLine(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
  site: string,
  close: () => void,
): ShowWindow {
  const head = element("div", "gpuviz-controls gpuviz-lines__head");
  const back = actionButton(scope, "All lines", "Return to the table; also: Escape", close);
  let row: LineRow | undefined;
  let show: ((rows: readonly LineRow[]) => void) | undefined;
  const largest = showLink(scope, chart, "Show its largest block in the charts", "", () => ({
    kind: "block",
    block: row?.largest ?? 0,
  }));
  head.append(back, element("strong", "gpuviz-table__call-site", site), largest);
  scope.append(parent, head);
  back.focus({ preventScroll: true });
  return (window) => {
    const rows = chart.linesIn(window);
    row = rows.find(({ callSite }) => callSite.site === site);
    largest.hidden = row?.largest === undefined;
    const isShown = show !== undefined;
    // A window, or a recording that is sent anew, may lack the line for a while.
    const frame = row?.frame ?? frameOf(chart, site);
    show ??= frame && sourceView(scope, parent, chart, frame);
    show?.(rows);
    if (!isShown) {
      showCurrent(parent);
    }
  };
}

function frameOf(chart: ChartContext, site: string): LineRow["frame"] {
  return chart.linesIn(undefined).find(({ callSite }) => callSite.site === site)?.frame;
}

/** Scrolls a panel, and nothing around it, to the line whose source it shows. */
function showCurrent(within: HTMLElement): void {
  const panel = within.closest(".gpuviz-drawer__panel");
  const line = within.querySelector(".gpuviz-source__current");
  if (panel !== null && line !== null) {
    const distance = line.getBoundingClientRect().top - panel.getBoundingClientRect().top;
    panel.scrollTop += distance - panel.clientHeight / 2;
  }
}
