import { ACTIONS } from "../wire/codes.ts";
import assert from "node:assert/strict";
import { test } from "node:test";

import { seeded } from "../../testing/seeded.ts";
import { EventLog } from "./event_log.ts";
import { nameFramework } from "./events.ts";
import { tableOf } from "../../testing/table_of.ts";

test("the events of a device are the same in whatever batches they come", () => {
  const random = seeded(6);
  const rows = Array.from({ length: 300 }, (_, row) => ({
    time: Math.max(row * 10 - Math.floor(random() * 25), 0),
    action: ACTIONS[Math.floor(random() * 3)] ?? "alloc",
    address: Math.floor(random() * 1e12),
    device: Math.floor(random() * 3),
  }));
  const log = new EventLog(40);
  for (let start = 0; start < 300; start += 70) {
    const part = rows.slice(start, start + 70);
    log.append(
      tableOf("memory_events", {
        time: part.map((row) => row.time),
        action: part.map((row) => row.action),
        address: part.map((row) => row.address),
        device: part.map((row) => row.device),
      }),
    );
  }

  assert.deepEqual([...log.devices].sort(), [0, 1, 2]);
  assert.equal(log.ofDevice(3).count, 0);
  for (const device of [0, 1, 2]) {
    const own = rows.filter((row) => row.device === device);
    const events = log.ofDevice(device);

    assert.equal(events.count, own.length);
    assert.equal(
      events.initialCount,
      rows.slice(0, 40).filter((row) => row.device === device).length,
    );
    assert.deepEqual(
      [...events.address],
      own.map((row) => row.address),
    );
    assert.deepEqual(
      [...events.action],
      own.map((row) => ACTIONS.indexOf(row.action)),
    );
    assert.deepEqual(
      [...events.timeNs],
      own.map((_, at) => Math.max(...own.slice(0, at + 1).map((row) => row.time))),
    );
  }
});

test("memory is shared once blocks of two frameworks were allocated on a device", () => {
  const log = new EventLog(0);
  const append = (action: string, framework: string, device: number): void => {
    const [time, address] = [[0], [0]];
    log.append(
      tableOf("memory_events", {
        time,
        action: [action],
        address,
        device: [device],
        framework: [framework],
      }),
    );
  };

  append("alloc", "cupy", 0);
  append("segment_alloc", "torch", 0);
  append("alloc", "torch", 1);
  const before = [0, 1].map((device) => log.ofDevice(device).isShared);
  append("alloc", "torch", 0);

  assert.deepEqual(before, [false, false]);
  assert.deepEqual(
    [0, 1].map((device) => log.ofDevice(device).isShared),
    [true, false],
  );
  assert.deepEqual([...log.ofDevice(0).framework].map(nameFramework), [
    "CuPy",
    "PyTorch",
    "PyTorch",
  ]);
});
