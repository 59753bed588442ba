import assert from "node:assert/strict";
import { test } from "node:test";

import {
  columnFromArray,
  dictionary,
  float64,
  tableFromColumns,
  tableToIPC,
  utf8,
} from "@uwdata/flechette";

import type { Batches } from "../wire/batches.ts";
import { Follower } from "./follower.ts";

const NUMBERS = "id time end name thread parent".split(" ");

/** A range with an id, as the rows of a message. */
function rangeWith(id: number): DataView {
  const numbers = NUMBERS.map(
    (name) => [name, columnFromArray([name === "id" ? id : 1], float64())] as const,
  );
  const kind = columnFromArray(["range"], dictionary(utf8()));
  const columns = { ...Object.fromEntries(numbers), kind };
  const stream = tableToIPC(tableFromColumns(columns), { format: "stream" });
  // At an odd place, as in a message with text before its buffers.
  const shifted = new Uint8Array((stream?.length ?? 0) + 1);
  shifted.set(stream ?? [], 1);
  return new DataView(shifted.buffer, 1);
}

class Kernel {
  readonly asked: number[] = [];
  nowMs = 0;
  readonly follower = new Follower(
    (since) => this.asked.push(since),
    () => this.nowMs,
  );

  send(number: number, ids: readonly number[], more: Partial<Batches> = {}): void {
    const message = {
      number,
      part: 0,
      parts: 0,
      recording: true,
      live: true,
      durationNs: 1000 * number,
      initialEvents: 0,
      tables: ids.map(() => "ranges"),
      ...more,
    };
    this.follower.receive(message, ids.map(rangeWith));
  }

  get ranges(): number {
    return this.follower.recording.gpu.ranges.count;
  }
}

test("a snapshot and what follows it are taken in order", () => {
  const kernel = new Kernel();
  kernel.follower.catchUp();
  kernel.send(7, [1, 2], { parts: 1 });
  kernel.send(8, [3]);

  assert.deepEqual(kernel.asked, [-1]);
  assert.equal(kernel.ranges, 3);
  assert.equal(kernel.follower.number, 8);
  assert.equal(kernel.follower.durationNs, 8000);
});

test("a message that comes twice is taken once", () => {
  const kernel = new Kernel();
  kernel.send(1, [1, 2], { parts: 1 });
  const before = kernel.follower.recording;
  kernel.send(2, [3]);
  kernel.send(2, [4]);
  kernel.send(1, [5, 6], { parts: 1 });

  assert.equal(kernel.ranges, 3);
  assert.equal(kernel.follower.recording, before);
});

test("after a gap nothing is taken until what is missing has come, which is asked for once", () => {
  const kernel = new Kernel();
  kernel.send(1, [1], { parts: 1 });
  kernel.send(3, [3]);
  kernel.send(4, [4]);
  const stopped = [kernel.ranges, kernel.follower.isWaiting];
  kernel.send(2, [2]);
  kernel.send(3, [3]);
  kernel.send(4, [4]);

  assert.deepEqual(stopped, [1, true]);
  assert.deepEqual(kernel.asked, [1]);
  assert.equal(kernel.ranges, 4);
  assert.equal(kernel.follower.isWaiting, false);
});

test("a kernel that does not answer is asked again, ever more rarely", () => {
  const kernel = new Kernel();
  kernel.send(1, [1], { parts: 1 });
  const askedAt: number[] = [];
  for (kernel.nowMs = 0; kernel.nowMs <= 30_000; kernel.nowMs += 500) {
    const before = kernel.asked.length;
    kernel.send(3 + kernel.nowMs, []);
    if (kernel.asked.length > before) {
      askedAt.push(kernel.nowMs);
    }
  }

  assert.deepEqual(askedAt, [0, 4000, 12_000, 28_000]);
});

test("a snapshot in parts replaces what was known when it is whole", () => {
  const kernel = new Kernel();
  kernel.send(1, [1, 2], { parts: 1 });
  kernel.send(9, [7], { part: 0, parts: 3 });
  kernel.send(9, [8], { part: 1, parts: 3 });
  const meanwhile = kernel.ranges;
  kernel.send(9, [9], { part: 2, parts: 3 });
  kernel.send(10, [10]);

  assert.equal(meanwhile, 2);
  assert.equal(kernel.ranges, 4);
});

test("a snapshot of which a part got lost is asked for again", () => {
  const kernel = new Kernel();
  kernel.send(1, [1], { parts: 1 });
  kernel.send(9, [7], { part: 0, parts: 3 });
  kernel.send(9, [9], { part: 2, parts: 3 });

  assert.deepEqual(kernel.asked, [1]);
  assert.equal(kernel.ranges, 1);
});

test("the end of a recording is known, and silence is measured", () => {
  const kernel = new Kernel();
  kernel.nowMs = 100;
  kernel.send(1, [1], { parts: 1 });
  kernel.nowMs = 5100;
  const silentMs = kernel.follower.silentMs;
  kernel.send(2, [], { recording: false });

  assert.equal(silentMs, 5000);
  assert.equal(kernel.follower.isLive, false);
});

test("who is told that the kernel is further asks for the rest", () => {
  const kernel = new Kernel();
  kernel.send(1, [1], { parts: 1 });
  kernel.follower.notice(1);
  kernel.follower.notice(2);

  assert.deepEqual(kernel.asked, [1]);
  assert.equal(kernel.ranges, 1);
});

test("another recording begins anew, and none at all is not waited for", () => {
  const kernel = new Kernel();
  const { follower } = kernel;
  kernel.send(0, [1, 2]);
  follower.begin();

  assert.deepEqual([follower.number, kernel.ranges, follower.recordings], [-1, 0, 2]);
  follower.catchUp();
  follower.waitForAny();
  assert.deepEqual([follower.hasAny, follower.isWaiting], [false, false]);
  follower.begin();
  kernel.send(7, [3], { parts: 1 });
  assert.deepEqual([follower.hasAny, follower.number, kernel.ranges], [true, 7, 1]);
  assert.deepEqual(kernel.asked, [-1]);
});
