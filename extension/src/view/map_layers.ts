import type { Categories } from "../model/categories.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { PlacedRows } from "../render/placed_rows.ts";
import type { Palette, Rects } from "../render/raster.ts";
import { CACHED_COLOUR } from "./theme.ts";

/** The rectangles of the segment map, from behind to front. */
export interface MapLayers {
  readonly segments: Rects;
  readonly blocks: Rects;
  /** Blocks whose free is pending. */
  readonly pending: Rects;
}

/** Where the rectangles of the segment map lie; what has its place keeps it while it may. */
export class MapPlaces {
  readonly #segments = new PlacedRows();
  readonly #blocks = new PlacedRows();
  readonly #pending = new PlacedRows();

  /** The rectangles of a timeline as they are in a raster of a height. */
  layers(
    timeline: DeviceTimeline,
    categories: Categories,
    palette: Palette,
    height: number,
  ): MapLayers {
    this.#place(timeline, height);
    const { blocks } = timeline;
    const { pending } = blocks;
    const groups = { palette: paletteOf(categories, palette), isBackdrop: false };
    return {
      segments: this.#segmentRects(timeline, palette),
      blocks: {
        ...groups,
        count: blocks.count,
        left: blocks.fromNs,
        right: blocks.inUseUntilNs,
        rows: this.#blocks,
        colour: categories.groups.ofBlock,
        extents: blocks.extents,
        isStriped: () => false,
      },
      pending: {
        ...groups,
        count: pending.count,
        left: pending.fromNs,
        right: pending.toNs,
        rows: this.#pending,
        colour: Uint32Array.from(pending.block, (block) => categories.groups.ofBlock[block] ?? 0),
        extents: pending.extents,
        isStriped: () => true,
      },
    };
  }

  #segmentRects({ segments, events }: DeviceTimeline, palette: Palette): Rects {
    const timeNs = (row: number): number => events.timeNs[row] ?? Infinity;
    return {
      count: segments.count,
      left: Float64Array.from(segments.begun, timeNs),
      right: Float64Array.from(segments.ended, timeNs),
      rows: this.#segments,
      colour: new Uint32Array(segments.count).fill(CACHED_COLOUR),
      palette,
      isStriped: () => false,
      isBackdrop: true,
    };
  }

  #place({ segments, blocks, layout, regions }: DeviceTimeline, height: number): void {
    const { shifts, totalBytes, revision } = layout;
    for (const rows of [this.#segments, this.#blocks, this.#pending]) {
      rows.begin(height, Math.max(totalBytes, 1), 0, revision);
    }
    this.#segments.restart();
    for (let at = 0; at < segments.count; at += 1) {
      const from = layout.offsetOf(segments.from[at] ?? 0);
      this.#segments.push(from + (segments.to[at] ?? 0) - (segments.from[at] ?? 0), from);
    }
    const push = (rows: PlacedRows, block: number): void => {
      const from = (blocks.address[block] ?? 0) + (shifts[regions[block] ?? 0] ?? 0);
      rows.push(from + (blocks.size[block] ?? 0), from);
    };
    for (let block = this.#blocks.count; block < blocks.count; block += 1) {
      push(this.#blocks, block);
    }
    const { pending } = blocks;
    for (let at = this.#pending.count; at < pending.count; at += 1) {
      push(this.#pending, pending.block[at] ?? 0);
    }
  }
}

/** The colours of categories, by group. */
function paletteOf({ ofGroup }: Categories, { fill, edge }: Palette): Palette {
  return {
    fill: Uint32Array.from(ofGroup, (place) => fill[place] ?? 0),
    edge: Uint32Array.from(ofGroup, (place) => edge[place] ?? 0),
  };
}
