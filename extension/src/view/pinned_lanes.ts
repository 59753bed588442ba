import type { Signal } from "../base/signal.ts";
import type { Lane } from "../model/lane.ts";
import type { LaneLayout } from "./lane_layout.ts";
import type { Plot } from "./plot.ts";

export const PIN_HINT = "Click or P: pin to the top, or unpin";

/** What a link calls a lane: `stream:3` or `thread:7`. */
export function nameOfLane({ stream, thread }: Lane): string {
  return stream === undefined ? `thread:${thread}` : `stream:${stream}`;
}

/** The pinned lanes, then the others, each in their order. */
export function pinnedFirst(lanes: readonly Lane[], pinned: readonly string[]): readonly Lane[] {
  const isPinned = (lane: Lane): boolean => pinned.includes(nameOfLane(lane));
  return [...lanes.filter(isPinned), ...lanes.filter((lane) => !isPinned(lane))];
}

/** Lets a click on the name of a lane pin it, and P the lane that the arrow keys have chosen. */
export function addPins(
  plot: Plot,
  pinned: Signal<readonly string[]>,
  chosen: Signal<number>,
  layout: () => LaneLayout,
): void {
  const { scope, host } = plot;
  const pin = (event: Event, lane: Lane | undefined): void => {
    if (lane !== undefined) {
      // The click chooses no moment.
      event.stopImmediatePropagation();
      const name = nameOfLane(lane);
      const others = pinned.value.filter((each) => each !== name);
      pinned.value = others.length < pinned.value.length ? others : [...others, name];
    }
  };
  scope.listen(
    host,
    "click",
    (event) => {
      if (event.offsetX < plot.area.left && event.detail <= 1) {
        pin(event, laneAtHeight(layout(), event.offsetY - plot.area.top));
      }
    },
    { capture: true },
  );
  scope.listen(host, "keydown", (event) => {
    const lane = layout().lanes[chosen.value]?.lane;
    if (lane !== undefined && event.key.toLowerCase() === "p" && !event.ctrlKey && !event.metaKey) {
      pin(event, lane);
      chosen.value = layout().lanes.findIndex((each) => nameOfLane(each.lane) === nameOfLane(lane));
    }
  });
}

export function laneAtHeight({ lanes }: LaneLayout, y: number): Lane | undefined {
  return lanes.find(({ topPx, heightPx }) => y >= topPx && y < topPx + heightPx)?.lane;
}
