import type { SegmentAtMoment } from "./moment.ts";

/** A segment's bar: its row, and the bytes left of it in that row. */
export interface Bar {
  readonly segment: number;
  readonly row: number;
  readonly offset: number;
}

export interface BarLayout {
  readonly bars: readonly Bar[];
  readonly rows: number;
  /** The bytes that fill the whole width of a row. */
  readonly widthBytes: number;
}

const FEWEST_ROWS = 6;
const GAP_SHARE = 0.004;

/** Packs bars into rows, largest first, each into the first row with room for it. */
export function packBars(segments: readonly SegmentAtMoment[]): BarLayout {
  const sizes = segments.map((segment) => segment.to - segment.from);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const largest = sizes.reduce((high, size) => Math.max(high, size), 0);
  const widthBytes = Math.max(largest, total / FEWEST_ROWS, 1);
  const gap = widthBytes * GAP_SHARE;
  const filled: number[] = [];
  const bars = sizes
    .map((_, segment) => segment)
    .sort((left, right) => (sizes[right] ?? 0) - (sizes[left] ?? 0) || left - right)
    .map((segment) => {
      const size = sizes[segment] ?? 0;
      const fitting = filled.findIndex((used) => used + size <= widthBytes);
      const row = fitting < 0 ? filled.length : fitting;
      const offset = filled[row] ?? 0;
      filled[row] = offset + size + gap;
      return { segment, row, offset };
    });
  return { bars, rows: filled.length, widthBytes };
}
