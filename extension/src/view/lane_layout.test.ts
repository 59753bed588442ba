import assert from "node:assert/strict";
import { test } from "node:test";

import type { Lane } from "../model/lane.ts";
import { SpanStack } from "../model/span_stack.ts";
import { layOutLanes } from "./lane_layout.ts";

/** A lane with spans one after the other. */
function laneOf(title: string, spans: number, stream?: number): Lane {
  const stack = new SpanStack();
  const fromNs = Array.from({ length: spans }, (_, span) => 10 * span);
  stack.append({
    fromNs,
    toNs: fromNs.map((from) => from + 5),
    kind: fromNs.map(() => 0),
    source: fromNs.map((_, span) => span),
  });
  return { title, stream, stack };
}

test("of too many lanes those with most spans are laid out, streams first, in their order", () => {
  const threads = Array.from({ length: 5000 }, (_, thread) =>
    laneOf(`thread ${thread}`, thread % 100 === 0 ? 3 : 2),
  );
  const streams = Array.from({ length: 200 }, (_, stream) => laneOf(`stream ${stream}`, 1, stream));

  const { lanes, heightPx } = layOutLanes([...threads, ...streams]);

  const titles = lanes.map(({ lane }) => lane.title);
  assert.equal(titles.length, 300);
  assert.equal(titles.filter((title) => /^thread \d*00$|^thread 0$/.test(title)).length, 50);
  assert.deepEqual(
    titles.slice(100),
    streams.map(({ title }) => title),
  );
  assert.ok(heightPx < 8192);
});

test("as many lanes as there is room for are all laid out", () => {
  const lanes = Array.from({ length: 300 }, (_, thread) => laneOf(`thread ${thread}`, 1));

  assert.equal(layOutLanes(lanes).lanes.length, 300);
});

test("each group of lanes has one heading, above the first of its lanes", () => {
  const group = (name: string, lane: Lane): Lane => ({ ...lane, group: name });
  const lanes = [
    group("rank 0", laneOf("thread", 1)),
    group("rank 0", laneOf("stream", 1, 1)),
    group("rank 1", laneOf("thread", 1)),
  ];

  const { headings, lanes: placed, heightPx } = layOutLanes(lanes);

  assert.deepEqual(
    headings.map(({ title }) => title),
    ["rank 0", "rank 1"],
  );
  const [first, second] = headings.map(({ topPx }) => topPx);
  assert.ok((first ?? 0) < (placed[0]?.topPx ?? 0));
  assert.ok((placed[1]?.topPx ?? 0) < (second ?? 0) && (second ?? 0) < (placed[2]?.topPx ?? 0));
  assert.ok(heightPx > layOutLanes(lanes.map(({ group: _, ...lane }) => lane)).heightPx);
});
