import type { ArrowTable } from "../wire/arrow.ts";

/**
 * What the host did in some time in which a device was idle because of it: when, the row of the
 * activity that ended the idle time, a call stack (0 if unknown), and what it was.
 */
type Piece = readonly [
  device: number,
  fromNs: number,
  toNs: number,
  activity: number,
  stack: number,
  text: string,
];

/** What the host did while devices were idle because of it, as `gpuviz.analysis` found it. */
export class HostWork {
  /** A few thousand at most. */
  readonly pieces: Piece[] = [];

  append(table: ArrowTable): void {
    const columns = ["device", "time", "end", "activity", "stack"].map((each) =>
      table.numbers(each),
    );
    table.texts("text").forEach((text, row) => {
      this.pieces.push([...columns.map((each) => each[row]), text] as unknown as Piece);
    });
  }

  /** How long the host did what in a window, the longest first. */
  within(
    device: number | undefined,
    fromNs: number,
    toNs: number,
  ): [text: string, timeNs: number][] {
    const times = new Map<string, number>();
    for (const [of, begin, end, , , text] of this.pieces) {
      const timeNs = Math.min(end, toNs) - Math.max(begin, fromNs);
      if (timeNs > 0 && of === device) {
        times.set(text, (times.get(text) ?? 0) + timeNs);
      }
    }
    return [...times].toSorted((left, right) => right[1] - left[1]);
  }
}
