import assert from "node:assert/strict";
import { test } from "node:test";

import { seeded } from "../../testing/seeded.ts";
import { SpanRow } from "./span_row.ts";
import { SpanStack, type Spans } from "./span_stack.ts";

function randomSpans(seed: number, count: number, longest: number): Spans {
  const random = seeded(seed);
  const fromNs = Array.from({ length: count }, () => Math.floor(random() * 10_000));
  return {
    fromNs,
    toNs: fromNs.map((from) => from + Math.floor(random() * random() * longest)),
    kind: fromNs.map(() => Math.floor(random() * 5)),
    source: fromNs.map((_, place) => place),
  };
}

function overlap(from: number, to: number, left: number, right: number): number {
  return Math.max(Math.min(to, right) - Math.max(from, left), 0);
}

test("columns are as full as the spans in them, and name the one that takes most", () => {
  const random = seeded(5);
  const row = new SpanRow();
  let end = 0;
  for (let span = 0; span < 3000; span += 1) {
    const from = end + Math.floor(random() * 3) * Math.floor(random() * 40);
    end = from + Math.floor(random() * random() * 60);
    row.push(from, end, span % 3, span);
  }
  const [begins, ends] = [row.fromNs, row.toNs];
  for (const [fromNs, toNs, width] of [
    [0, end, 20],
    [end / 3, end / 2, 97],
    [1000, 1400, 400],
    [5000, 5030, 300],
  ] as const) {
    const { share, span } = row.columns(fromNs, toNs, width);
    for (let column = 0; column < width; column += 1) {
      const left = fromNs + ((toNs - fromNs) * column) / width;
      const right = fromNs + ((toNs - fromNs) * (column + 1)) / width;
      const inside = begins.reduce(
        (sum, from, at) => sum + overlap(from, ends[at] ?? 0, left, right),
        0,
      );
      const found = inside / (right - left);
      const isRounded = share[column] === 1 || span[column] === -1;
      const expected = isRounded ? Math.round(found) : found;
      assert.ok(Math.abs((share[column] ?? 0) - expected) < 1e-5, `share of column ${column}`);
      const main = span[column] ?? -1;
      if (main >= 0) {
        const most = begins.reduce(
          (best, from, at) => Math.max(best, overlap(from, ends[at] ?? 0, left, right)),
          0,
        );
        assert.equal(overlap(begins[main] ?? 0, ends[main] ?? 0, left, right), most);
      }
    }
  }
});

test("no span is lost at any zoom, not even one without length", () => {
  const row = new SpanRow();
  [0, 10, 10, 25, 40].forEach((from, span) => {
    row.push(from, [10, 10, 25, 25, 40][span] ?? 0, 0, span);
  });
  for (let width = 1; width <= 400; width += 1) {
    const { span } = row.columns(0, 41, width);
    row.fromNs.forEach((from, place) => {
      const first = Math.floor((from * width) / 41 + 1e-9);
      const last = Math.max(Math.ceil(((row.toNs[place] ?? 0) * width) / 41 - 1e-9), first + 1);

      assert.ok(
        span.subarray(first, last).some((shown) => shown >= 0),
        `${place} of ${width}`,
      );
    });
    assert.ok(width < 42 || span.includes(4), `the one without length in ${width}`);
  }
  const { share } = row.columns(39, 41, 2);
  assert.deepEqual([...row.range(40, 41)], [4, 5]);
  assert.equal(share[1], 0);
});

test("spans that overlap lie in different rows, whatever the order in which they come", () => {
  const spans = randomSpans(8, 2000, 200);
  const atOnce = new SpanStack();
  atOnce.append(spans);
  const inBatches = new SpanStack();
  for (let start = 0; start < 2000; start += 90) {
    const part = (name: keyof Spans): number[] => Array.from(spans[name]).slice(start, start + 90);
    inBatches.append({
      fromNs: part("fromNs"),
      toNs: part("toNs"),
      kind: part("kind"),
      source: part("source"),
    });
  }
  for (const stack of [atOnce, inBatches]) {
    assert.equal(stack.count, 2000);
    const sources = stack.rows.flatMap((row) => [...row.source]);
    assert.deepEqual(
      sources.sort((left, right) => left - right),
      Array.from({ length: 2000 }, (_, place) => place),
    );
    for (const row of stack.rows) {
      row.fromNs.forEach((from, place) => {
        assert.ok(place === 0 || from >= (row.toNs[place - 1] ?? 0));
        assert.equal(from, spans.fromNs[row.source[place] ?? 0]);
      });
    }
  }
  const busiest = Math.max(
    ...Array.from(
      spans.fromNs,
      (time) =>
        Array.from(spans.fromNs).filter((from, at) => from <= time && (spans.toNs[at] ?? 0) > time)
          .length,
    ),
  );
  assert.ok(atOnce.rows.length <= busiest + 1);
  assert.equal(inBatches.rows.filter((row) => row.count > 0).length, atOnce.rows.length);
});

test("what is inside another span lies below it", () => {
  const stack = new SpanStack();
  stack.append({
    fromNs: [5, 0, 7, 5],
    toNs: [10, 100, 8, 20],
    kind: [0, 1, 2, 3],
    source: [0, 1, 2, 3],
  });

  assert.deepEqual(
    stack.rows.map((row) => [...row.source]),
    [[1], [3], [0], [2]],
  );
});
