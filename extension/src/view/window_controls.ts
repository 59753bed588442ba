import { formatDuration, formatTime } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import type { ChartContext } from "./chart_context.ts";
import { actionButton, element } from "./dom.ts";
import type { TimeWindow } from "./time_window.ts";

const BUTTON_ZOOM = 0.5;

/** Buttons for the time axis. */
export function windowControls(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
  help: () => void,
): void {
  const bar = element("div", "gpuviz-controls");
  const act = actionButton.bind(undefined, scope);
  const time = chart.selection.window;
  const middle = (): number => (time.range.value.fromNs + time.range.value.toNs) / 2;
  bar.append(
    act("−", "Zoom out; also: S, Ctrl and wheel", () => time.zoom(1 / BUTTON_ZOOM, middle())),
    act("+", "Zoom in; also: W, Ctrl and wheel", () => time.zoom(BUTTON_ZOOM, middle())),
    act("◀", "Earlier; also: A", () => time.pan(-BUTTON_ZOOM)),
    act("▶", "Later; also: D", () => time.pan(BUTTON_ZOOM)),
    act("All", "Show the whole recording; also: double click", () => time.reset()),
    act("Measure", "Measure the selection, or the time shown; also: M", () =>
      chart.selection.measure((selected) => chart.timesOf(selected)),
    ),
    act("?", "Keys and gestures", help),
  );
  parent.append(bar);
}

/** What part of the time axis is shown. */
export function shownWindow(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const shown = element("p", "gpuviz-controls__text");
  const time = chart.selection.window;
  parent.append(shown);
  scope.follow(
    () => {
      shown.textContent = describeWindow(time, chart.timeline.endNs);
    },
    time.range,
    chart.revision,
  );
}

function describeWindow(time: TimeWindow, endNs: number): string {
  const { fromNs, toNs } = time.range.value;
  const digits = (toNs - fromNs) / 1000;
  const whole = formatDuration(endNs);
  const first = time.full.fromNs;
  if (!time.isFull) {
    const to = formatTime(Math.min(toNs, endNs), digits);
    return `${formatTime(fromNs, digits)} to ${to} of ${whole} shown`;
  }
  return first === 0
    ? `all ${whole} shown`
    : `${whole}, all but the first ${formatDuration(first)}`;
}
