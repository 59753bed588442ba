import type { Scope } from "../base/scope.ts";
import type { Selected } from "../model/selected.ts";
import type { ChartContext } from "./chart_context.ts";
import { zoomTo } from "./selected_panel.ts";
import type { TimeRange } from "./time_window.ts";

const ZOOM = 0.7;
const PAN = 0.15;

/** What the keys open. */
export interface KeyTargets {
  readonly search: () => void;
  readonly help: () => void;
  readonly name: () => void;
}

/** The keys of all charts together, while the focus is in `root` and not in a field, and `isActive`. */
export function addTimelineKeys(
  scope: Scope,
  root: HTMLElement,
  chart: ChartContext,
  targets: KeyTargets,
  isActive = (): boolean => true,
): void {
  const { selection } = chart;
  const { window: shown, cursorNs, selected, measured } = selection;
  const middle = (): number => {
    const { fromNs, toNs } = shown.range.value;
    return cursorNs.value ?? (fromNs + toNs) / 2;
  };
  const setEdge = (edge: Partial<TimeRange>): void => {
    const { fromNs, toNs } = { ...(measured.value ?? shown.range.value), ...edge };
    if (fromNs < toNs) {
      selected.value = undefined;
      measured.value = { fromNs: Math.round(fromNs), toNs: Math.round(toNs) };
    }
  };
  const actions: Readonly<Record<string, () => void>> = {
    w: () => shown.zoom(ZOOM, middle()),
    s: () => shown.zoom(1 / ZOOM, middle()),
    a: () => shown.pan(-PAN),
    d: () => shown.pan(PAN),
    f: () => {
      if (selected.value !== undefined) {
        zoomTo(selected.value, chart);
      } else if (measured.value !== undefined) {
        selection.showMeasured(measured.value);
      }
    },
    "[": () => {
      selected.value = neighbour(chart, -1) ?? selected.value;
    },
    "]": () => {
      selected.value = neighbour(chart, 1) ?? selected.value;
    },
    n: targets.name,
    "(": () => setEdge({ fromNs: Math.round(middle()) }),
    ")": () => setEdge({ toNs: Math.round(middle()) }),
    m: () => selection.measure((found) => chart.timesOf(found)),
    Backspace: () => selection.back(),
    "/": targets.search,
    "?": targets.help,
    Escape: () => {
      chart.tooltip.hide();
      if (selected.value === undefined) {
        measured.value = undefined;
      }
      selected.value = undefined;
    },
  };
  scope.listen(root, "keydown", (event) => {
    const isTyping =
      event.target instanceof HTMLElement &&
      event.target.matches("input, select, dialog, dialog *");
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (
      action !== undefined &&
      isActive() &&
      !isTyping &&
      !event.ctrlKey &&
      !event.metaKey &&
      !event.altKey
    ) {
      event.preventDefault();
      action();
    }
  });
}

/** The span before or after the selected one in its row, or the block. */
function neighbour({ lanes, selection, timeline }: ChartContext, by: number): Selected | undefined {
  const selected = selection.selected.value;
  if (selected?.kind === "block") {
    const block = selected.block + by;
    return timeline.blocks.address[block] === undefined ? undefined : { kind: "block", block };
  }
  if (selected?.kind !== "span") {
    return undefined;
  }
  for (const { kind, source } of lanes.flatMap((lane) => lane.stack.rows)) {
    const span = source.findIndex(
      (row, place) => row === selected.row && kind[place] === selected.spanKind,
    );
    const next = span + by;
    if (span >= 0) {
      const row = source[next];
      return row === undefined ? undefined : { kind: "span", spanKind: kind[next] ?? 0, row };
    }
  }
  return undefined;
}
