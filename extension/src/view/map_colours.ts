import { COLOURED, type Categories } from "../model/categories.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { RectKind } from "../model/map_rects.ts";
import { Extents } from "../render/extents.ts";
import type { Rects } from "../render/raster.ts";
import { CACHED_COLOUR } from "./theme.ts";

/** The rectangles of the segment map with the colours of a grouping. */
export function mapColours(timeline: DeviceTimeline, categories: Categories): Rects {
  const { count, fromNs, toNs, fromByte, toByte, kind, owner } = timeline.rects;
  const colour = new Uint8Array(count);
  const striped = new Uint8Array(count);
  for (let rect = 0; rect < count; rect += 1) {
    const isSegment = kind[rect] === RectKind.segment;
    const group = categories.ofBlock[owner[rect] ?? 0] ?? COLOURED;
    colour[rect] = isSegment ? CACHED_COLOUR : group;
    striped[rect] = kind[rect] === RectKind.pending ? 1 : 0;
  }
  return {
    count,
    extents: new Extents(fromNs, toNs, count),
    backdrop: timeline.segments.count,
    left: fromNs,
    right: toNs,
    top: toByte,
    bottom: fromByte,
    colour,
    striped,
  };
}
