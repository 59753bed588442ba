import assert from "node:assert/strict";
import { test } from "node:test";

import { seeded } from "../../testing/seeded.ts";
import { tableOf } from "../../testing/table_of.ts";
import { HostWaits, StreamWaits } from "./host_calls.ts";

test("rows from a time on are replaced by those that come later", () => {
  const random = seeded(7);
  const rows = new StreamWaits();
  let expected: number[] = [];
  for (let round = 0; round < 40; round += 1) {
    const times = Array.from({ length: Math.floor(random() * 6) }, () => Math.floor(random() * 99));
    const from = random() < 0.7 ? Math.floor(random() * 110) : undefined;
    expected = [...expected.filter((time) => time < (from ?? Infinity)), ...times];
    const columns = { recorded_time: times, resumed_time: times.map((time) => 2 * time) };
    rows.append(tableOf("stream_waits", columns, from));

    assert.deepEqual([...rows.recordedNs], expected);
    assert.deepEqual(
      [...rows.resumedNs],
      expected.map((time) => 2 * time),
    );
  }
});

test("a number that is unknown is not a number, not what lies in its place", () => {
  const waits = new HostWaits();
  waits.append(
    tableOf("host_waits", { time: [1, 2], kind: ["memcpy", "memcpy"], waiting_ns: [null, 7] }),
  );

  assert.deepEqual([...waits.waitingNs], [NaN, 7]);
});
