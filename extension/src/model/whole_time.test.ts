import assert from "node:assert/strict";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import { GrowingRecording } from "./growing_recording.ts";
import { wholeOf } from "./whole_time.ts";

function wholeWith(firstNs: number): unknown {
  const recording = new GrowingRecording();
  recording.append(
    tableOf("activities", { time: [firstNs], end: [firstNs + 10], kind: ["kernel"] }),
  );
  recording.extend(1000);
  return wholeOf(recording.contentsOf(0));
}

test("only a long time without events at the begin is left out", () => {
  assert.deepEqual(wholeWith(250), { fromNs: 0, toNs: 1000 });
  assert.deepEqual(wholeWith(500), { fromNs: 490, toNs: 1000 });
});

test("a recording of a window begins no later than the window", () => {
  const recording = new GrowingRecording();
  recording.append(tableOf("activities", { time: [800], end: [810], kind: ["kernel"] }));
  recording.gpu.bounds = { fromNs: 500, toNs: 1000 };
  recording.extend(1000);

  assert.deepEqual(wholeOf(recording.contentsOf(0)), { fromNs: 490, toNs: 1000 });
});
