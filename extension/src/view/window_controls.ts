import { formatDuration, formatTime } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import type { ChartContext } from "./chart_context.ts";
import { actionButton, element } from "./dom.ts";
import type { TimeWindow } from "./time_window.ts";

const BUTTON_ZOOM = 0.5;

/** Buttons for the time axis, and what part of it is shown. */
export function windowControls(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
  help: () => void,
): void {
  const bar = element("div", "gpuviz-controls");
  const shown = element("span", "gpuviz-controls__text");
  const act = actionButton.bind(undefined, scope);
  const time = chart.selection.window;
  const middle = (): number => (time.range.value.fromNs + time.range.value.toNs) / 2;
  bar.append(
    shown,
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
  scope.follow(
    () => {
      shown.textContent = describeWindow(time);
    },
    time.range,
    chart.revision,
  );
}

function describeWindow(time: TimeWindow): string {
  const { fromNs, toNs } = time.range.value;
  const digits = (toNs - fromNs) / 1000;
  const whole = formatDuration(time.full.toNs);
  return time.isFull
    ? `all ${whole} shown`
    : `${formatTime(fromNs, digits)} to ${formatTime(toNs, digits)} of ${whole} shown`;
}
