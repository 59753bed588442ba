import type { BarLayout } from "./bars.ts";
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

/** Every byte of every segment, as blocks and the gaps between them, by address. */
export function barPieces(
  segments: readonly SegmentAtMoment[],
  layout: BarLayout,
  blocks: Blocks,
): BarPiece[] {
  return layout.bars.flatMap((bar) => {
    const segment = segments[bar.segment];
    return segment === undefined ? [] : piecesOf(segment, bar.segment, bar.row, bar.offset, blocks);
  });
}

function piecesOf(
  segment: SegmentAtMoment,
  index: number,
  row: number,
  offset: number,
  blocks: Blocks,
): BarPiece[] {
  const pieces: BarPiece[] = [];
  const shift = offset - segment.from;
  walkSegment(segment, blocks, (from, to, block) => {
    if (to > from) {
      const place = { row, from: from + shift, to: to + shift };
      pieces.push({ ...place, segment: index, block, address: from });
    }
  });
  return pieces;
}
