import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { Frames } from "./frames.ts";

/** Frames with drawings of some durations; `next` runs a frame and returns which were drawn. */
function framesOf(context: TestContext, durationsMs: readonly number[]) {
  let nowMs = 0;
  let drawn: number[] = [];
  let waiting: (() => void)[] = [];
  context.mock.method(performance, "now", () => nowMs);
  const { requestAnimationFrame, cancelAnimationFrame } = globalThis;
  context.after(() => Object.assign(globalThis, { requestAnimationFrame, cancelAnimationFrame }));
  Object.assign(globalThis, {
    requestAnimationFrame: (draw: () => void) => waiting.push(draw),
    cancelAnimationFrame: () => (waiting = []),
  });
  const frames = new Frames();
  const draws = durationsMs.map((ms, at) => () => {
    nowMs += ms;
    drawn.push(at);
  });
  const next = (): number[] => {
    const due = waiting;
    [waiting, drawn] = [[], []];
    due.forEach((draw) => draw());
    return drawn;
  };
  const requestAll = (): void => draws.forEach((draw) => frames.request(draw));
  requestAll();
  next();
  return { frames, requestAll, next, drawn: () => drawn };
}

test("a frame leaves to the next ones what would make it long, but nothing light", (context) => {
  const { requestAll, next } = framesOf(context, [6, 30, 0.5, 9, 2]);

  requestAll();

  assert.deepEqual([next(), next(), next()], [[0, 2, 3], [1], [4]]);
  assert.deepEqual(next(), []);
});

test("drawings that keep being requested all have their turn", (context) => {
  const { requestAll, next } = framesOf(context, [20, 30, 40]);

  const turns = Array.from({ length: 6 }, () => {
    requestAll();
    return next();
  });

  assert.deepEqual(turns, [[0], [1], [2], [0], [1], [2]]);
});

test("what is drawn now is not split", (context) => {
  const { frames, requestAll, next, drawn } = framesOf(context, [20, 30]);

  requestAll();
  drawn().length = 0;
  frames.drawNow();

  assert.deepEqual(drawn(), [0, 1]);
  assert.deepEqual(next(), []);
});
