import { Signal } from "../base/signal.ts";
import { countBelow } from "../base/search.ts";
import type { ChartContext } from "./chart_context.ts";
import type { LaneLayout, PlacedLane, SpanInRow } from "./lane_layout.ts";
import type { Drawing, Plot } from "./plot.ts";

const NONE = -1;

/** Lets the arrow keys go from lane to lane; the place of the chosen one, -1 until then. */
export function addLaneWalk(
  plot: Plot,
  chart: ChartContext,
  layout: () => LaneLayout,
): Signal<number> {
  const chosen = new Signal(NONE);
  plot.scope.listen(plot.host, "keydown", (event) => {
    if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      event.preventDefault();
      const { lanes } = layout();
      const next = chosen.value + (event.key === "ArrowUp" ? -1 : 1);
      chosen.value = Math.min(Math.max(next, 0), lanes.length - 1);
      const { fromNs, toNs } = chart.selection.window.range.value;
      const lane = lanes[chosen.value]?.lane;
      chart.say(lane === undefined ? "" : chart.describeGpu.lane(lane, fromNs, toNs).join(", "));
    }
  });
  plot.scope.listen(plot.host, "blur", () => {
    chosen.value = NONE;
  });
  return chosen;
}

/** A frame around the lane that the keys are in. */
export function drawChosenLane({ context, area, theme }: Drawing, home?: PlacedLane): void {
  if (home !== undefined) {
    context.strokeStyle = theme.accent;
    context.lineWidth = 2;
    context.strokeRect(area.left - 2, area.top + home.topPx - 2, area.width + 3, home.heightPx + 4);
  }
}

/** The innermost span of a lane at a time, else the one that is nearest. */
export function spanAtTime({ rows }: PlacedLane, timeNs: number): SpanInRow | undefined {
  let best: SpanInRow | undefined;
  let leastNs = Infinity;
  for (const { row } of rows) {
    const after = countBelow(row.fromNs, timeNs);
    for (const span of [after - 1, after]) {
      const [from = Infinity, to = -Infinity] = [row.fromNs[span], row.toNs[span]];
      const awayNs = Math.max(from - timeNs, timeNs - to, 0);
      if (span >= 0 && span < row.count && awayNs <= leastNs) {
        leastNs = awayNs;
        best = { row, span };
      }
    }
  }
  return best;
}
