import type { Scope } from "../base/scope.ts";
import type { Signal } from "../base/signal.ts";
import { otherTime, type Anchor } from "../model/linked_times.ts";
import type { ChartContext } from "./chart_context.ts";

/**
 * Lets the charts of two recordings show the same part of the program, the same moment and the same
 * span while they are linked; only one of them has something selected.
 */
export function linkCharts(
  scope: Scope,
  charts: readonly [before: ChartContext, after: ChartContext],
  anchors: readonly Anchor[],
  isLinked: Signal<boolean>,
): void {
  let isLed = false;
  let leader: 0 | 1 = 0;
  const windows = [0, 1].map((place) => {
    const side = place === 0 ? 0 : 1;
    const { selection: own, timeline } = charts[side];
    const { selection: other, timeline: otherTimeline } = charts[side === 0 ? 1 : 0];
    const there = (timeNs: number): number =>
      Math.min(Math.max(otherTime(anchors, side, timeNs), 0), other.window.full.toNs);
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
        other.window.show(otherTime(anchors, side, fromNs), otherTime(anchors, side, toNs));
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
