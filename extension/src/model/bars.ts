import type { Blocks } from "./blocks.ts";
import { walkSegment, type SegmentAtMoment } from "./moment.ts";

/** A block or a gap in a bar: bytes across, rows down. */
export interface BarPiece {
  readonly row: number;
  readonly from: number;
  readonly to: number;
  readonly segment: number;
  /** An index in `Blocks`; undefined for free space. */
  readonly block: number | undefined;
  readonly address: number;
}

/** Every byte of every segment, in a bar for each. */
export interface Bars {
  /** By bar, and in it by address. */
  readonly pieces: readonly BarPiece[];
  readonly rows: number;
  /** The bytes that fill the whole width of a row. */
  readonly widthBytes: number;
}

const FEWEST_ROWS = 6;
const GAP_SHARE = 0.004;

/** Packs bars into rows, largest first, each into the first row with room for it. */
export function packBars(segments: readonly SegmentAtMoment[], blocks: Blocks): Bars {
  const sizes = segments.map((segment) => segment.to - segment.from);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const largest = sizes.reduce((high, size) => Math.max(high, size), 0);
  const widthBytes = Math.max(largest, total / FEWEST_ROWS, 1);
  const gap = widthBytes * GAP_SHARE;
  const filled: number[] = [];
  const pieces: BarPiece[] = [];
  const largestFirst = [...segments.entries()].sort(
    ([left], [right]) => (sizes[right] ?? 0) - (sizes[left] ?? 0) || left - right,
  );
  for (const [index, segment] of largestFirst) {
    const size = sizes[index] ?? 0;
    const fitting = filled.findIndex((used) => used + size <= widthBytes);
    const row = fitting < 0 ? filled.length : fitting;
    const offset = filled[row] ?? 0;
    filled[row] = offset + size + gap;
    const shift = offset - segment.from;
    walkSegment(segment, blocks, (from, to, block) => {
      if (to > from) {
        const place = { row, from: from + shift, to: to + shift };
        pieces.push({ ...place, segment: index, block, address: from });
      }
    });
  }
  return { pieces, rows: Math.max(filled.length, 1), widthBytes };
}
