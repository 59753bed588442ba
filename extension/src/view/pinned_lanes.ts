import { Signal } from "../base/signal.ts";
import type { Lane } from "../model/lane.ts";
import type { LaneLayout } from "./lane_layout.ts";
import type { Plot } from "./plot.ts";

export const PIN_HINT = "Click or P: pin to the top, or unpin";

/** Lanes that a reader has pinned above all others. */
export class PinnedLanes {
  readonly keys = new Signal<ReadonlySet<string>>(new Set());

  has(lane: Lane): boolean {
    return this.keys.value.has(keyOf(lane));
  }

  toggle(lane: Lane): void {
    const others = [...this.keys.value].filter((key) => key !== keyOf(lane));
    this.keys.value = new Set(this.has(lane) ? others : [...others, keyOf(lane)]);
  }

  /** The pinned lanes, then the others, each in their order. */
  first(lanes: readonly Lane[]): readonly Lane[] {
    return [...lanes.filter((lane) => this.has(lane)), ...lanes.filter((lane) => !this.has(lane))];
  }
}

function keyOf({ group, title, stream, thread }: Lane): string {
  return [group, title, stream, thread].join("\n");
}

/** Lets a click on the name of a lane pin it, and P the lane that the arrow keys have chosen. */
export function addPins(
  plot: Plot,
  pinned: PinnedLanes,
  chosen: Signal<number>,
  layout: () => LaneLayout,
): void {
  const { scope, host } = plot;
  const pin = (event: Event, lane: Lane | undefined): void => {
    if (lane !== undefined) {
      // The click chooses no moment.
      event.stopImmediatePropagation();
      pinned.toggle(lane);
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
      chosen.value = layout().lanes.findIndex((each) => keyOf(each.lane) === keyOf(lane));
    }
  });
}

export function laneAtHeight({ lanes }: LaneLayout, y: number): Lane | undefined {
  return lanes.find(({ topPx, heightPx }) => y >= topPx && y < topPx + heightPx)?.lane;
}
