import type { Lane } from "./lane.ts";
import { isHostCopy, SpanKind } from "./span_kinds.ts";
import type { SpanRow } from "./span_row.ts";

/** How long a device was busy in a window; times in ns. */
export interface Busy {
  /** At least one kernel, copy, memset or graph ran. */
  readonly busyNs: number;
  readonly kernelNs: number;
  /** A copy from or to the host ran. */
  readonly copyNs: number;
  /** Such a copy and a kernel ran at once. */
  readonly overlapNs: number;
  /** A copy within or between devices ran. */
  readonly deviceCopyNs: number;
}

/** What the streams' lanes say of a window, with the definitions of gpuviz/analysis/overlap.py. */
export function busyIn(lanes: readonly Lane[], fromNs: number, toNs: number): Busy {
  const unions = { busy: new Union(), kernel: new Union(), copy: new Union() };
  const [either, deviceCopy] = [new Union(), new Union()];
  const rows = lanes.filter((lane) => lane.stream !== undefined).flatMap((lane) => lane.stack.rows);
  inOrder(rows, fromNs, toNs, (from, to, kind) => {
    const [begin, end] = [Math.max(from, fromNs), Math.min(to, toNs)];
    const isKernel = kind === SpanKind.kernel;
    const isCopy = isHostCopy(kind);
    if (kind !== SpanKind.streamRange) {
      unions.busy.add(begin, end);
    }
    if (isKernel) {
      unions.kernel.add(begin, end);
    }
    if (isCopy) {
      unions.copy.add(begin, end);
    }
    if (isKernel || isCopy) {
      either.add(begin, end);
    }
    if (kind === SpanKind.deviceToDevice) {
      deviceCopy.add(begin, end);
    }
  });
  const { busy, kernel, copy } = unions;
  return {
    busyNs: busy.ns,
    kernelNs: kernel.ns,
    copyNs: copy.ns,
    overlapNs: kernel.ns + copy.ns - either.ns,
    deviceCopyNs: deviceCopy.ns,
  };
}

/** The time in at least one of intervals that come by their begin. */
class Union {
  ns = 0;
  #untilNs = -Infinity;

  add(fromNs: number, toNs: number): void {
    if (toNs > this.#untilNs) {
      this.ns += toNs - Math.max(fromNs, this.#untilNs);
      this.#untilNs = toNs;
    }
  }
}

/** Visits the spans of rows in a window by their begin: a heap has the next one of each row. */
function inOrder(
  rows: readonly SpanRow[],
  fromNs: number,
  toNs: number,
  visit: (fromNs: number, toNs: number, kind: number) => void,
): void {
  const heap = rows
    .map((row) => {
      const [at, end] = row.range(fromNs, toNs);
      return { at, end, fromNs: row.fromNs, toNs: row.toNs, kind: row.kind };
    })
    .filter(({ at, end }) => at < end)
    .sort((left, right) => (left.fromNs[left.at] ?? 0) - (right.fromNs[right.at] ?? 0));
  const nextOf = (place: number): number => {
    const head = heap[place];
    return head === undefined ? Infinity : (head.fromNs[head.at] ?? Infinity);
  };
  for (let first = heap[0]; first !== undefined; first = heap[0]) {
    visit(first.fromNs[first.at] ?? 0, first.toNs[first.at] ?? 0, first.kind[first.at] ?? 0);
    first.at += 1;
    if (first.at === first.end) {
      const last = heap.pop();
      if (last !== undefined && last !== first) {
        heap[0] = last;
      }
    }
    for (let place = 0; ;) {
      const left = 2 * place + 1;
      const below = nextOf(left + 1) < nextOf(left) ? left + 1 : left;
      const [upper, lower] = [heap[place], heap[below]];
      if (upper === undefined || lower === undefined || nextOf(place) <= nextOf(below)) {
        break;
      }
      heap[place] = lower;
      heap[below] = upper;
      place = below;
    }
  }
}
