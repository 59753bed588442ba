import type { Scope } from "../base/scope.ts";
import type { Picked } from "../model/picked.ts";
import type { ChartContext } from "./chart_context.ts";
import { zoomTo } from "./picked_panel.ts";

const ZOOM = 0.7;
const PAN = 0.15;

/** What the keys open. */
export interface KeyTargets {
  readonly search: () => void;
  readonly help: () => void;
}

/** The keys of all charts together, while the focus is in `root` and not in a field. */
export function addTimelineKeys(
  scope: Scope,
  root: HTMLElement,
  chart: ChartContext,
  targets: KeyTargets,
): void {
  const { selection } = chart;
  const { window: shown, cursorNs, picked, measured } = selection;
  const middle = (): number => {
    const { fromNs, toNs } = shown.range.value;
    return cursorNs.value ?? (fromNs + toNs) / 2;
  };
  const actions: Readonly<Record<string, () => void>> = {
    w: () => shown.zoom(ZOOM, middle()),
    s: () => shown.zoom(1 / ZOOM, middle()),
    a: () => shown.pan(-PAN),
    d: () => shown.pan(PAN),
    f: () => {
      if (picked.value !== undefined) {
        zoomTo(picked.value, chart);
      }
    },
    "[": () => {
      picked.value = neighbour(chart, -1) ?? picked.value;
    },
    "]": () => {
      picked.value = neighbour(chart, 1) ?? picked.value;
    },
    g: () => {
      chart.showsIdle.value = !chart.showsIdle.value;
    },
    m: () => selection.measure((found) => chart.timesOf(found)),
    Backspace: () => selection.back(),
    "/": targets.search,
    "?": targets.help,
    Escape: () => {
      chart.tooltip.hide();
      picked.value = undefined;
      measured.value = undefined;
    },
  };
  scope.listen(root, "keydown", (event) => {
    const isTyping =
      event.target instanceof HTMLElement &&
      event.target.matches("input, select, dialog, dialog *");
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (action !== undefined && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      action();
    }
  });
}

/** The span before or after the selected one in its row, or the block. */
function neighbour({ lanes, selection, timeline }: ChartContext, by: number): Picked | undefined {
  const picked = selection.picked.value;
  if (picked?.kind === "block") {
    const block = picked.block + by;
    return timeline.blocks.address[block] === undefined ? undefined : { kind: "block", block };
  }
  if (picked?.kind !== "span") {
    return undefined;
  }
  for (const { kind, source } of lanes.flatMap((lane) => lane.stack.rows)) {
    const span = source.findIndex(
      (row, place) => row === picked.row && kind[place] === picked.spanKind,
    );
    const next = span + by;
    if (span >= 0) {
      const row = source[next];
      return row === undefined ? undefined : { kind: "span", spanKind: kind[next] ?? 0, row };
    }
  }
  return undefined;
}
