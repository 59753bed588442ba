import type { ArrowTable } from "../wire/arrow.ts";

/** What the host did in some time in which a device was idle because of it. */
interface Piece {
  readonly device: number;
  readonly fromNs: number;
  readonly toNs: number;
  /** The row of the activity that ended the idle time. */
  readonly activity: number;
  /** One of its call stacks; 0 if unknown. */
  readonly stack: number;
  readonly text: string;
}

/** What the host did while devices were idle because of it, as `gpuviz.analysis` found it. */
export class HostWork {
  /** A few thousand at most. */
  pieces: Piece[] = [];

  append(table: ArrowTable): void {
    const { replaceFromNs } = table;
    if (replaceFromNs !== undefined) {
      this.pieces = this.pieces.filter(({ fromNs }) => fromNs < replaceFromNs);
    }
    const columns = ["device", "time", "end", "activity", "stack"].map((each) =>
      table.numbers(each),
    );
    table.texts("text").forEach((text, row) => {
      const [device = 0, fromNs = 0, toNs = 0, activity = 0, stack = 0] = columns.map(
        (each) => each[row],
      );
      this.pieces.push({ device, fromNs, toNs, activity, stack, text });
    });
  }

  /** How long the host did what in a window, the longest first. */
  within(
    device: number | undefined,
    fromNs: number,
    toNs: number,
  ): [text: string, timeNs: number][] {
    const times = new Map<string, number>();
    for (const piece of this.pieces) {
      const timeNs = Math.min(piece.toNs, toNs) - Math.max(piece.fromNs, fromNs);
      if (timeNs > 0 && piece.device === device) {
        times.set(piece.text, (times.get(piece.text) ?? 0) + timeNs);
      }
    }
    return [...times].toSorted((left, right) => right[1] - left[1]);
  }
}
