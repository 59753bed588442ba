import { formatCount } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import type { Selected } from "../model/selected.ts";
import { originOf } from "../model/blocks.ts";
import { relatedTo, type Related } from "../model/related.ts";
import { SpanKind, tableOfSpan } from "../model/span_kinds.ts";
import type { ChartContext } from "./chart_context.ts";
import { actionButton, element } from "./dom.ts";
import { Pace } from "./pace.ts";
import { sourceView } from "./source_view.ts";

const NOTHING = "Nothing is selected. Click a block, a kernel, a copy, a range or a CUDA call.";
const AROUND = 3;
const LINES_AROUND = 4;
/** More frequent changes are too fast to read. */
const PACE = { shortestMs: 1000, rest: 20 };

/** Describes what is selected, with a table of related items; returns the element. */
export function selectedPanel(scope: Scope, parent: HTMLElement, chart: ChartContext): HTMLElement {
  const properties = { role: "region", ariaLabel: "Selected", tabIndex: -1 };
  const panel = element("div", "gpuviz-selected", properties);
  scope.append(parent, panel);
  const { selected } = chart.selection;
  const grown = new Signal(0);
  let before: Selected | undefined;
  let text = "";
  scope.follow(
    (shown) => {
      const { value } = selected;
      const hadFocus = panel.contains(document.activeElement);
      const focused = [...panel.querySelectorAll("*")].indexOf(document.activeElement ?? panel);
      const about = value && aboutOf(value, chart);
      panel.replaceChildren(
        ...(about === undefined
          ? [element("p", "gpuviz-selected__nothing", NOTHING)]
          : describe(about, chart, shown)),
      );
      if (about !== undefined && value !== before) {
        chart.say(announcement(about));
      }
      if (hadFocus) {
        const same = value === before ? panel.querySelectorAll("*")[focused] : undefined;
        (same instanceof HTMLElement ? same : panel).focus({ preventScroll: true });
      }
      [before, text] = [value, JSON.stringify(about)];
    },
    selected,
    grown,
  );
  // Call stacks and launches may come after what they belong to.
  const pace = new Pace(panel, PACE, () => {
    const { value } = selected;
    if (value && !isHeld(panel) && JSON.stringify(aboutOf(value, chart)) !== text) {
      grown.value += 1;
    }
  });
  scope.use(pace.scope);
  scope.watch(() => pace.request(), chart.revision);
  return panel;
}

/** Whether a reader presses a button or marks a text. */
function isHeld(panel: HTMLElement): boolean {
  const marked = document.getSelection();
  const isMarked = marked?.isCollapsed === false && panel.contains(marked.anchorNode);
  return isMarked || panel.querySelector(":active") !== null;
}

/** What there is to say about a selection. */
interface About {
  readonly selected: Selected;
  readonly lines: readonly string[];
  readonly related: Related | undefined;
}

function aboutOf(selected: Selected, chart: ChartContext): About {
  return { selected, lines: linesAbout(selected, chart), related: relatedTo(selected, chart) };
}

function announcement({ lines, related }: About): string {
  const count = related === undefined ? "" : `; ${related.title}: ${formatCount(related.total)}`;
  return `Selected: ${lines[0] ?? ""}${count}`;
}

function describe(about: About, chart: ChartContext, scope: Scope): HTMLElement[] {
  const { selected, related } = about;
  const [title = "", ...lines] = about.lines;
  const head = element("div", "gpuviz-controls");
  const act = (label: string, hint: string, action: () => void): void => {
    head.append(actionButton(scope, label, hint, action));
  };
  act("Zoom to it", "Also: F", () => zoomTo(selected, chart));
  if (chart.selection.canGoBack) {
    act("Back", "Return to the previous selection; also: Backspace", () => chart.selection.back());
  }
  act("Clear", "Also: Escape", () => {
    chart.selection.selected.value = undefined;
  });
  return [
    element("h4", "gpuviz-selected__title", { textContent: title, title }),
    head,
    storyOf(lines),
    ...sourceOf(selected, chart, scope),
    ...(related === undefined ? [] : relatedTable(related, chart, scope)),
  ];
}

const FACT = /^([a-z][a-z ]+): (.+)$/;

/** Facts as terms and values, all else as it is, before or after them. */
function storyOf(lines: readonly string[]): HTMLElement {
  const facts = element("dl", "gpuviz-selected__facts");
  const [first, rest]: [string[], string[]] = [[], []];
  let fact: HTMLElement | undefined;
  for (const text of lines) {
    const [, term, value] = FACT.exec(text) ?? [];
    if (fact !== undefined && text.startsWith("    ")) {
      fact.append(element("code", "gpuviz-selected__source", text.trim()));
    } else if (term === undefined || value === undefined) {
      fact = undefined;
      (facts.childElementCount === 0 ? first : rest).push(text);
    } else {
      fact = element("dd", "", value);
      facts.append(element("dt", "", term), fact);
    }
  }
  const story = element("div", "gpuviz-selected__story");
  const paragraph = (texts: readonly string[]): HTMLElement[] =>
    texts.length === 0 ? [] : [element("p", "gpuviz-selected__lines", texts.join("\n"))];
  const isStated = facts.childElementCount > 0;
  story.append(...paragraph(first), ...(isStated ? [facts] : []), ...paragraph(rest));
  return story;
}

/** The source around the line that allocated, launched or called; empty where it is unknown. */
function sourceOf(selected: Selected, chart: ChartContext, scope: Scope): HTMLElement[] {
  const frame = chart.stacks.userFrameOf(stackOf(selected, chart));
  if (frame === undefined || frame.source === "") {
    return [];
  }
  const place = element("div", "gpuviz-selected__around");
  const show = sourceView(scope, place, chart, frame, LINES_AROUND);
  show([]);
  // The figures of a large recording take longer than a frame.
  const later = window.setTimeout(() => show(chart.linesIn(undefined)));
  scope.defer(() => window.clearTimeout(later));
  return [place];
}

function stackOf(selected: Selected, { timeline, gpu }: ChartContext): number {
  if (selected.kind === "block") {
    return timeline.events.stack[originOf(timeline.blocks, selected.block)] ?? 0;
  }
  const { activities, apiCalls } = gpu;
  const { spanKind, row } =
    selected.kind === "gap" ? { spanKind: SpanKind.kernel, row: selected.gap.next } : selected;
  const table = tableOfSpan(spanKind);
  if (table === "activities") {
    return apiCalls.stackOf(activities.correlation[row]);
  }
  const rows = gpu[table];
  return "stack" in rows ? (rows.stack[row] ?? 0) : 0;
}

export function linesAbout(selected: Selected, chart: ChartContext): string[] {
  switch (selected.kind) {
    case "block":
      return chart.describe.block(selected.block);
    case "gap": {
      const { fromNs, toNs, stream } = selected.gap;
      return chart.describeGpu.gap(selected.gap, chart.idleOf(stream)?.causesIn(fromNs, toNs));
    }
    case "span":
      return chart.describeGpu.span(selected.spanKind, selected.row);
  }
}

/** Selects something and brings it into view. */
export function reveal(selected: Selected, chart: ChartContext): void {
  chart.selection.selected.value = selected;
  zoomTo(selected, chart);
  chart.showSelected();
}

/** Shows what is selected with some time around it. */
export function zoomTo(selected: Selected, chart: ChartContext): void {
  const { fromNs, toNs } = chart.timesOf(selected);
  const middle = (fromNs + toNs) / 2;
  const half = (Math.max(toNs - fromNs, 1) * AROUND) / 2;
  chart.selection.window.show(middle - half, middle + half);
}

function relatedTable(related: Related, chart: ChartContext, scope: Scope): HTMLElement[] {
  const { title, headings, rows, total } = related;
  const count = total > rows.length ? `the first ${formatCount(rows.length)} of ` : "";
  const caption = element("caption", "gpuviz-selected__caption");
  caption.textContent = `${title}: ${total === 0 ? "none known" : count + formatCount(total)}`;
  const table = element("table", "gpuviz-table gpuviz-selected__table");
  table.append(caption);
  if (total > 0) {
    const head = table.createTHead().insertRow();
    headings.forEach((heading) => head.append(element("th", "", heading)));
  }
  const body = table.createTBody();
  for (const { cells, selected } of rows) {
    const row = body.insertRow();
    cells.forEach((text, column) => {
      const cell = row.insertCell();
      if (column > 0) {
        cell.textContent = text;
        return;
      }
      const choose = actionButton(scope, text, "Select it", () => reveal(selected, chart));
      choose.className = "gpuviz-link";
      cell.append(choose);
    });
  }
  const frame = element("div", "gpuviz-selected__frame");
  frame.append(table);
  return [frame];
}
