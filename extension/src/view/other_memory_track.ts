import { formatBytes, formatTime } from "../base/format.ts";
import { fromPixel, type Scale } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import type { OtherMemory } from "../model/conclusions.ts";
import { usedAt, type UsedMemory } from "../model/device_memory.ts";
import { drawByteAxis, scaleUp } from "./axes.ts";
import type { DeviceView } from "./device_view.ts";
import { element } from "./dom.ts";
import { addLevel, showBytes } from "./levels_legend.ts";
import { saveAndClip } from "./plot.ts";
import { fillUsed, strokeUsed } from "./step_lines.ts";
import { timePlot } from "./time_plot.ts";
import { addTrack, LEAST_LOW_TRACK_PX } from "./track.ts";

const HEADROOM = 1.04;
const SIZE = 80;
const OPTIONS = {
  label: "Other memory over time. Arrow keys move the cursor.",
  heightPx: 70,
  topPx: 20,
};
const HINT =
  "Bytes of the device outside the recorded allocators, from sample to sample: what libraries " +
  "allocated from CUDA, and the rest.";
const REST = "CUDA contexts, other processes, and what was there before the recording";

/** A track of memory outside the recorded allocators. */
export function otherMemoryTrack(
  scope: Scope,
  { panes, chart }: DeviceView,
  samples: readonly OtherMemory[],
): void {
  const column = (bytes: (sample: OtherMemory) => number): UsedMemory => ({
    timeNs: Float64Array.from(samples, ([timeNs]) => timeNs),
    bytes: Float64Array.from(samples, bytes),
  });
  const all = column(([, libraries, rest]) => libraries + rest);
  const rest = column(([, , rest]) => rest);
  const most = all.bytes.reduce((high, bytes) => Math.max(high, bytes), 1);
  const levelsAt = (timeNs: number) => {
    if (timeNs < (rest.timeNs[0] ?? 0)) {
      return undefined;
    }
    const others = usedAt(rest, timeNs);
    return { libraries: usedAt(all, timeNs) - others, rest: others };
  };
  const linesAt = (timeNs: number, resolutionNs: number): string[] => {
    const levels = levelsAt(timeNs);
    const time = formatTime(timeNs, resolutionNs);
    return levels === undefined
      ? [`${time}: before the first sample`]
      : [
          `${time}: ${formatBytes(levels.libraries)} by libraries`,
          `${formatBytes(levels.rest)} by ${REST}`,
        ];
  };
  const show = ({ body, side }: { body: HTMLElement; side: HTMLElement }): void => {
    let drawn: Scale | undefined;
    const plot = timePlot(scope, body, chart, OPTIONS, {
      draw: (drawing, time) => {
        const { context, theme } = drawing;
        const bytes = scaleUp(drawing.area, most * HEADROOM);
        drawByteAxis(drawing, bytes);
        saveAndClip(drawing, 2);
        context.fillStyle = theme.used;
        fillUsed(drawing, all, time, bytes);
        context.fillStyle = theme.reservedFill;
        fillUsed(drawing, rest, time, bytes);
        context.lineWidth = 1.5;
        context.strokeStyle = theme.reserved;
        strokeUsed(drawing, rest, time, bytes);
        context.restore();
        drawn = time;
      },
    });
    scope.listen(plot.host, "keydown", () => {
      const { value: timeNs } = chart.selection.cursorNs;
      if (timeNs !== undefined) {
        chart.say(linesAt(timeNs, 1000).join(", "));
      }
    });
    chart.tooltip.attach(scope, plot.host, (x) => {
      const { left, width } = plot.area;
      return drawn && x >= left && x <= left + width
        ? linesAt(fromPixel(drawn, x), (drawn.to - drawn.from) / width)
        : undefined;
    });
    const legend = element("dl", "gpuviz-readout");
    side.append(legend);
    const libraries = addLevel(legend, "libraries", "allocated from CUDA by libraries");
    const others = addLevel(legend, "reserved", REST, "the rest");
    scope.follow(
      () => {
        const levels = levelsAt(chart.shownNs);
        showBytes(libraries, levels?.libraries);
        showBytes(others, levels?.rest);
      },
      chart.selection.cursorNs,
      chart.selection.momentRow,
      chart.revision,
    );
  };
  addTrack(scope, panes, chart, {
    name: "other",
    title: "Other",
    hint: HINT,
    size: SIZE,
    above: "blocks",
    leastPx: LEAST_LOW_TRACK_PX,
    show,
  });
}
