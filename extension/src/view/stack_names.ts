import { fromPixel, toPixel, type Scale } from "../base/scale.ts";
import type { AllocationStack } from "../model/allocation_stack.ts";
import { fittingName } from "./map_names.ts";
import type { Drawing } from "./plot.ts";
import { inkOnPixel } from "./theme.ts";

const LOWEST_PX = 10;
const NARROWEST_PX = 22;
const PADDING_PX = 4;
/** Between two names of one band. */
const APART_PX = 40;

/** Writes into each band what it is, where it is as high as a line of text for long enough. */
export function drawStackNames(
  drawing: Drawing,
  { places, bytes, least }: AllocationStack,
  scale: Scale,
  colours: ArrayLike<number>,
  nameOf: (band: number) => string,
): void {
  const { context, area } = drawing;
  const columnPx = area.width / least.length;
  const levels = new Float64Array(least.length);
  const leastBytes = Math.abs(fromPixel(scale, LOWEST_PX) - fromPixel(scale, 0));
  context.font = "10px system-ui, sans-serif";
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (let band = 0; band < places.length; band += 1) {
    let [first, top, bottom, freeFromPx] = [0, -Infinity, Infinity, 0];
    const endRun = (column: number): void => {
      const left = area.left + first * columnPx + PADDING_PX;
      const width = (column - first) * columnPx - 2 * PADDING_PX;
      if (width >= NARROWEST_PX && left >= freeFromPx) {
        const name = fittingName(context, nameOf(band), width);
        context.fillStyle = inkOnPixel(colours[band] ?? 0);
        context.fillText(name, left, (top + bottom) / 2);
        freeFromPx = left + context.measureText(name).width + APART_PX;
      }
      [first, top, bottom] = [column, -Infinity, Infinity];
    };
    for (let column = 0; column < least.length; column += 1) {
      const level = levels[column] ?? 0;
      const next = level + (bytes[column * places.length + band] ?? 0);
      levels[column] = next;
      // A name must not lie on the lighter tone.
      const most = Math.min(next, least[column] ?? 0);
      if (most - level < leastBytes) {
        endRun(column);
        first = column + 1;
        continue;
      }
      const [highest, lowest] = [toPixel(scale, most), toPixel(scale, level)];
      if (Math.min(bottom, lowest) - Math.max(top, highest) < LOWEST_PX) {
        endRun(column);
      }
      [top, bottom] = [Math.max(top, highest), Math.min(bottom, lowest)];
    }
    endRun(least.length);
  }
}
