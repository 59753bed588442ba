import { IDLE_CAUSES } from "../wire/codes.ts";
import assert from "node:assert/strict";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import { IdleGaps, NO_ACTIVITY } from "./idle_gaps.ts";

interface Part {
  readonly stream: number;
  readonly time: number;
  readonly end: number;
  readonly cause: string;
  readonly activity: number;
}

/** A gap of the device and of stream 2, and another gap of the stream that touches the first. */
const PARTS: readonly Part[] = [
  { stream: 0, time: 10, end: 40, cause: "host", activity: 3 },
  { stream: 2, time: 10, end: 25, cause: "host", activity: 3 },
  { stream: 2, time: 25, end: 40, cause: "dependency", activity: 3 },
  { stream: 2, time: 40, end: 70, cause: "unknown", activity: NO_ACTIVITY },
];

function rowsOf(parts: readonly Part[], replaceFromNs?: number): ReturnType<typeof tableOf> {
  const columns = {
    device: parts.map(() => 1),
    stream: parts.map(({ stream }) => stream),
    time: parts.map(({ time }) => time),
    end: parts.map(({ end }) => end),
    cause: parts.map(({ cause }) => cause),
    activity: parts.map(({ activity }) => activity),
  };
  return tableOf("idle_gaps", columns, replaceFromNs);
}

function gapsOf(idle: IdleGaps, stream: number): string[] {
  const gaps = idle.of(1, stream)?.gaps;
  return Array.from(gaps?.fromNs ?? [], (from, gap) => {
    return `${from}-${gaps?.toNs[gap]} before ${gaps?.source[gap]}`;
  });
}

test("parts of a gap are one gap, whose causes are summed in any window", () => {
  const idle = new IdleGaps();
  idle.append(rowsOf(PARTS));
  const none = Object.fromEntries(IDLE_CAUSES.map((cause) => [cause, 0]));

  assert.deepEqual(gapsOf(idle, 0), ["10-40 before 3"]);
  assert.deepEqual(gapsOf(idle, 2), ["10-40 before 3", "40-70 before -1"]);
  assert.deepEqual(idle.of(1, 0)?.causesIn(0, 99), { ...none, host: 30 });
  assert.deepEqual(idle.of(1, 2)?.causesIn(20, 50), {
    ...none,
    host: 5,
    dependency: 15,
    unknown: 10,
  });
  assert.equal(idle.of(0, 2), undefined);
});

test("parts from a time on are replaced by those that come later", () => {
  const idle = new IdleGaps();
  idle.append(rowsOf(PARTS));
  idle.append(rowsOf([{ stream: 2, time: 25, end: 90, cause: "allocation", activity: 8 }], 25));

  assert.deepEqual(gapsOf(idle, 0), ["10-40 before 3"]);
  assert.deepEqual(gapsOf(idle, 2), ["10-25 before 3", "25-90 before 8"]);
  assert.equal(idle.of(1, 2)?.causesIn(0, 99).allocation, 65);
});

test("a file has the differences from row to row, also between its parts", () => {
  const idle = new IdleGaps();
  const column = (name: keyof Part): number[] => PARTS.map((part) => Number(part[name]));
  const [ends, activities] = [column("end"), column("activity")];
  const stored = {
    device: PARTS.map(() => 1),
    stream: column("stream"),
    cause: PARTS.map(({ cause }) => cause),
    pause: column("time").map((time, row) => time - (ends[row - 1] ?? 0)),
    length: column("time").map((time, row) => (ends[row] ?? 0) - time),
    step: activities.map((activity, row) => activity - (activities[row - 1] ?? 0)),
  };
  for (const rows of [
    [0, 3],
    [3, 4],
  ]) {
    const part = Object.entries(stored).map(([name, values]) => [name, values.slice(...rows)]);
    idle.append(tableOf("stored idle_gaps", Object.fromEntries(part)));
  }
  const plain = new IdleGaps();
  plain.append(rowsOf(PARTS));

  assert.deepEqual(gapsOf(idle, 2), gapsOf(plain, 2));
  assert.deepEqual(idle.of(1, 2)?.causesIn(20, 70), plain.of(1, 2)?.causesIn(20, 70));
});
