import { formatBytes } from "../base/format.ts";
import { binaryTicks, toPixel } from "../base/scale.ts";
import { line } from "./axes.ts";
import type { Drawing } from "./plot.ts";

const TICK_SPACING_PX = 130;

/** A scale below the bars that tells how many bytes a length stands for. */
export function drawBytesAcross(drawing: Drawing, widthBytes: number): void {
  const { context, area, theme } = drawing;
  const scale = {
    from: 0,
    to: widthBytes,
    fromPx: area.left,
    toPx: area.left + area.width,
  };
  const bottom = area.top + area.height;
  context.strokeStyle = theme.muted;
  context.fillStyle = theme.muted;
  context.textBaseline = "top";
  line(context, area.left, bottom + 4.5, area.left + area.width, bottom + 4.5);
  for (const tick of binaryTicks(0, widthBytes, area.width / TICK_SPACING_PX)) {
    const x = Math.round(toPixel(scale, tick)) + 0.5;
    context.textAlign = tick === 0 ? "left" : x > scale.toPx - 30 ? "right" : "center";
    line(context, x, bottom + 1, x, bottom + 8);
    context.fillText(formatBytes(tick), x, bottom + 10);
  }
  context.textAlign = "left";
  context.fillText("length of a bar, in bytes", area.left, bottom + 26);
}
