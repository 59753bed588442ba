import { fromPixel, toPixel, type Scale } from "../base/scale.ts";
import type { AllocationStack } from "../model/allocation_stack.ts";
import { setText } from "./axes.ts";
import { fittingName } from "./map_names.ts";
import type { Drawing } from "./plot.ts";
import { inkOnPixel } from "./theme.ts";

const LOWEST_PX = 10;
const NARROWEST_PX = 22;
const PADDING_PX = 4;
/** Between two names of one band. */
const APART_PX = 40;

/** Columns in which a band is high enough, and the pixels that it covers in all of them. */
interface Run {
  readonly band: number;
  readonly first: number;
  top: number;
  bottom: number;
}

/** Writes into each band what it is, where it is as high as a line of text for long enough. */
export function drawStackNames(
  drawing: Drawing,
  { columns, starts, places, bytes, least }: AllocationStack,
  scale: Scale,
  colours: ArrayLike<number>,
  nameOf: (band: number) => string,
): void {
  const { context, area } = drawing;
  const columnPx = area.width / columns;
  const leastBytes = Math.abs(fromPixel(scale, LOWEST_PX) - fromPixel(scale, 0));
  const runs: (Run | undefined)[] = Array.from(places, () => undefined);
  const freeFromPx = new Float64Array(places.length);
  setText(context, "left", "10px");
  const end = ({ band, first, top, bottom }: Run, column: number): void => {
    const left = area.left + first * columnPx + PADDING_PX;
    const width = (column - first) * columnPx - 2 * PADDING_PX;
    if (width >= NARROWEST_PX && left >= (freeFromPx[band] ?? 0)) {
      const name = fittingName(context, nameOf(band), width);
      context.fillStyle = inkOnPixel(colours[band] ?? 0);
      context.fillText(name, left, (top + bottom) / 2);
      freeFromPx[band] = left + context.measureText(name).width + APART_PX;
    }
  };
  for (let stretch = 0; stretch < starts.length; stretch += 1) {
    const column = starts[stretch] ?? 0;
    // A name must not lie on the lighter tone.
    const highest = least[stretch] ?? 0;
    let level = 0;
    for (let band = 0; band < places.length; band += 1) {
      const from = level;
      level += bytes[stretch * places.length + band] ?? 0;
      const run = runs[band];
      const to = Math.min(level, highest);
      if (to - from < leastBytes) {
        if (run !== undefined) {
          end(run, column);
          runs[band] = undefined;
        }
        continue;
      }
      const [top, bottom] = [toPixel(scale, to), toPixel(scale, from)];
      if (run === undefined) {
        runs[band] = { band, first: column, top, bottom };
      } else if (Math.min(run.bottom, bottom) - Math.max(run.top, top) < LOWEST_PX) {
        end(run, column);
        runs[band] = { band, first: column, top, bottom };
      } else {
        run.top = Math.max(run.top, top);
        run.bottom = Math.min(run.bottom, bottom);
      }
    }
  }
  runs.forEach((run) => run && end(run, columns));
}
