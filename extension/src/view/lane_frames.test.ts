import assert from "node:assert/strict";
import { test } from "node:test";

import { cutApart, cutInside, cutText } from "./lane_frames.ts";

/** A context in which each character is 10 px wide; it counts how often it measured. */
function contextOf(): { context: CanvasRenderingContext2D; measured: () => number } {
  let count = 0;
  const measureText = (text: string): { width: number } => {
    count += 1;
    return { width: 10 * text.length };
  };
  return { context: { measureText } as unknown as CanvasRenderingContext2D, measured: () => count };
}

test("a text that is too wide keeps its beginning, and a share of its end where asked for", () => {
  const { context } = contextOf();

  assert.equal(cutText(context, "abcdefgh", 80), "abcdefgh");
  assert.equal(cutText(context, "abcdefgh", 79), "abcdef…");
  assert.equal(cutText(context, "abcdefgh", 50, 0.5), "ab…gh");
  assert.equal(cutText(context, "abcdefgh", 5, 0.5), "");
});

test("a long text is not measured once for each of its characters", () => {
  const { context, measured } = contextOf();

  assert.equal(cutText(context, "x".repeat(10_000), 50, 0.25).length, 5);
  assert.ok(measured() < 20);
});

test("the name of a stream loses its middle words first, and keeps its line", () => {
  const { context } = contextOf();
  const name = "stream made at train.py:24 #1";

  assert.equal(cutInside(context, name, 290), name);
  assert.equal(cutInside(context, name, 280), "stream at train.py:24 #1");
  assert.equal(cutInside(context, name, 230), "stream train.py:24 #1");
  assert.equal(cutInside(context, name, 160), "stream t…y:24 #1");
});

test("names that would look alike begin where they differ", () => {
  const { context } = contextOf();
  const names = [0, 1].map((replica) => `trainer.replicas[${replica}].communication`);
  const oneLine = [true, true, true];

  const shown = cutApart(context, [...names, "copies"], oneLine, 160);
  const twice = cutApart(context, ["stream 0x7f0000001234", "stream 0x7f0000001234"], [], 100);

  assert.deepEqual(shown, [["…[0].communicat…"], ["…[1].communicat…"], ["copies"]]);
  assert.deepEqual(twice[0], twice[1]);
});
