import { toPixel } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import type { Signal } from "../base/signal.ts";
import { otherTime, type Anchor } from "../model/linked_times.ts";
import { line } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import type { Drawing } from "./plot.ts";

/**
 * Lets the charts of two recordings show the same part of the program, the same moment and the same
 * span while they are linked; only one of them has something selected.
 *
 * Both have one scale: what takes as long is as wide. The windows are as long as each other, and what
 * is below the pointer, else in the middle, corresponds.
 */
export function linkCharts(
  scope: Scope,
  charts: readonly [before: ChartContext, after: ChartContext],
  anchors: readonly Anchor[],
  isLinked: Signal<boolean>,
): void {
  shareScale(charts);
  let isLed = false;
  let leader: 0 | 1 = 0;
  const windows = [0, 1].map((place) => {
    const side = place === 0 ? 0 : 1;
    const { selection: own, timeline } = charts[side];
    const { selection: other, timeline: otherTimeline } = charts[side === 0 ? 1 : 0];
    const there = (timeNs: number): number =>
      Math.min(Math.max(otherTime(anchors, side, timeNs), 0), otherTimeline.endNs);
    const lead = (show: () => void, ...signals: readonly Signal<unknown>[]): void =>
      scope.watch(
        () => {
          if (!isLed && isLinked.value) {
            isLed = true;
            show();
            isLed = false;
          }
        },
        ...signals,
      );
    const showWindow = (): void => {
      const { fromNs, toNs } = own.window.range.value;
      if (own.window.isFull) {
        other.window.reset();
      } else {
        const { value: pointedNs = -1 } = own.cursorNs;
        const isPointed = pointedNs >= fromNs && pointedNs <= toNs;
        const alignedNs = isPointed ? pointedNs : (fromNs + toNs) / 2;
        const shiftNs = otherTime(anchors, side, alignedNs) - alignedNs;
        other.window.show(fromNs + shiftNs, toNs + shiftNs);
      }
    };
    scope.watch(() => {
      leader = isLed ? leader : side;
    }, own.window.range);
    lead(showWindow, own.window.range);
    lead(() => {
      const { value: timeNs } = own.cursorNs;
      other.cursorNs.value = timeNs === undefined ? undefined : there(timeNs);
    }, own.cursorNs);
    lead(() => {
      const { value: row } = own.momentRow;
      const timeNs = there(timeline.events.timeNs[row] ?? 0);
      const { row: otherRow } = other.stateAt(otherTimeline, timeNs);
      other.momentRow.value =
        row === timeline.peak ? otherTimeline.peak : Math.max(otherRow, otherTimeline.firstRow);
    }, own.momentRow);
    lead(() => {
      const { value: span } = own.measured;
      other.measured.value = span && {
        fromNs: Math.round(there(span.fromNs)),
        toNs: Math.round(there(span.toNs)),
      };
    }, own.measured);
    scope.watch(() => {
      if (own.selected.value !== undefined) {
        other.selected.value = undefined;
      }
    }, own.selected);
    return showWindow;
  });
  scope.watch(() => {
    if (isLinked.value) {
      isLed = true;
      windows[leader]?.();
      isLed = false;
    }
  }, isLinked);
}

/** Lets the axis of the shorter recording go on after its end, from where it is empty. */
function shareScale(charts: readonly ChartContext[]): void {
  const windows = charts.map(({ selection }) => selection.window);
  const longestNs = Math.max(...windows.map(({ full }) => full.toNs - full.fromNs));
  for (const chart of charts) {
    const { fromNs } = chart.selection.window.full;
    chart.selection.window.extend({ fromNs, toNs: fromNs + longestNs });
    chart.drawEnd = (drawing, time) => drawEnd(drawing, toPixel(time, chart.timeline.endNs));
  }
}

function drawEnd({ context, area, theme }: Drawing, x: number): void {
  const left = Math.max(Math.ceil(x), area.left);
  const right = area.left + area.width;
  if (left < right) {
    const bottom = area.top + area.height;
    context.fillStyle = theme.background;
    context.fillRect(left, 0, right - left + 1, bottom);
    context.strokeStyle = theme.muted;
    context.lineWidth = 1;
    line(context, left + 0.5, area.top, left + 0.5, bottom);
  }
}
