import assert from "node:assert/strict";
import { test } from "node:test";

import { IntervalUnion } from "../base/interval_union.ts";
import { seeded } from "../base/seeded.ts";
import { IdleGaps } from "./idle_gaps.ts";
import { SpanKind } from "./span_kinds.ts";
import { SpanStack } from "./span_stack.ts";
import { Work } from "./work.ts";

function randomSpans(random: () => number): { fromNs: number[]; toNs: number[]; kind: number[] } {
  const fromNs = Array.from({ length: 15 }, () => Math.floor(random() * 300));
  const toNs = fromNs.map((from) => from + Math.floor(random() * 12));
  const kind = fromNs.map(() => (random() < 0.2 ? SpanKind.streamRange : SpanKind.kernel));
  return { fromNs, toNs, kind };
}

test("gaps are each nanosecond between the first and the last work in which none ran", () => {
  const random = seeded(5);
  for (let round = 0; round < 40; round += 1) {
    const streams = [1, 2, 3].map((stream) => ({ stream, title: "", spans: randomSpans(random) }));
    const lanes = streams.map(({ stream, title, spans }) => {
      const stack = new SpanStack();
      stack.append({ ...spans, source: spans.fromNs.map((_, place) => place) });
      return { stream, title, stack };
    });
    const work = streams.flatMap(({ stream, spans: { fromNs, toNs, kind } }) =>
      fromNs.flatMap((from, span) =>
        kind[span] === SpanKind.kernel ? [{ stream, from, to: toNs[span] ?? 0 }] : [],
      ),
    );
    const begin = Math.min(...work.map(({ from }) => from));
    const end = Math.max(...work.map(({ to }) => to));
    const idleOf = (stream?: number): number[] =>
      Array.from({ length: end - begin }, (_, at) => begin + at).filter(
        (time) =>
          !work.some(
            (each) =>
              (stream ?? each.stream) === each.stream && each.from <= time && time < each.to,
          ),
      );
    const gaps = new IdleGaps(lanes, new Work());
    const inside = (row: typeof gaps.ofDevice | undefined): number[] =>
      Array.from(row?.fromNs ?? []).flatMap((from, gap) =>
        Array.from({ length: (row?.toNs[gap] ?? 0) - from }, (_, at) => from + at),
      );

    assert.deepEqual(inside(gaps.ofDevice), idleOf());
    lanes.forEach((lane) => {
      assert.deepEqual(inside(gaps.ofLane(lane)), idleOf(lane.stream));
    });
  }
});

test("a union of intervals covers what one of them does", () => {
  const random = seeded(8);
  for (let round = 0; round < 50; round += 1) {
    const intervals = Array.from({ length: 8 }, () => {
      const begin = Math.floor(random() * 60);
      return [begin, begin + Math.floor(random() * 9)] as const;
    });
    const [from, to] = [Math.floor(random() * 40), 30 + Math.floor(random() * 40)];
    let covered = 0;
    for (let time = from; time < to; time += 1) {
      covered += intervals.some(([begin, end]) => begin <= time && time < end) ? 1 : 0;
    }

    assert.equal(new IntervalUnion(intervals).covered(from, to), covered);
  }
});
