import assert from "node:assert/strict";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import { HostWork } from "./host_work.ts";

const rows = (time: number[], text: string[]): Parameters<typeof tableOf>[1] => ({
  device: time.map(() => 0),
  time,
  end: time.map((fromNs) => fromNs + 10),
  activity: time.map(() => 1),
  stack: time.map(() => 0),
  text,
});

test("pieces from a time on are replaced", () => {
  const work = new HostWork();
  work.append(tableOf("host_work", rows([0, 20, 40], ["first", "second", "third"])));
  work.append(tableOf("host_work", rows([20], ["other"]), 20));

  assert.deepEqual(work.within(0, 0, 100), [
    ["first", 10],
    ["other", 10],
  ]);
});
