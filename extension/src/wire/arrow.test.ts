import assert from "node:assert/strict";
import { test } from "node:test";

import {
  bool,
  columnFromArray,
  dictionary,
  float32,
  float64,
  int16,
  int64,
  list,
  tableFromColumns,
  tableToIPC,
  uint32,
  uint64,
  utf8,
} from "@uwdata/flechette";

import { ArrowTable, UNKNOWN_CODE } from "./arrow.ts";

function roundTrip(columns: Record<string, ReturnType<typeof columnFromArray>>): ArrowTable {
  const stream = tableToIPC(tableFromColumns(columns), { format: "stream" });
  assert.ok(stream !== null);
  return new ArrowTable("memory_events", new Uint8Array(stream));
}

test("64-bit integers are exact up to 2^53 and keep their sign", () => {
  const times = [0n, -5n, 4294967296n, 9007199254740991n];
  const addresses = [0n, 140704638566400n, 4294967295n, 1n];
  const table = roundTrip({
    time: columnFromArray(times, int64(), { maxBatchRows: 3 }),
    address: columnFromArray(addresses, uint64(), { maxBatchRows: 3 }),
    device: columnFromArray([0, -1, 7, 3], int16(), { maxBatchRows: 3 }),
  });

  assert.deepEqual([...table.numbers("time")], times.map(Number));
  assert.deepEqual([...table.numbers("address")], addresses.map(Number));
  assert.deepEqual([...table.numbers("device")], [0, -1, 7, 3]);
});

test("dictionary texts become codes in the reader's own order", () => {
  const actions = ["free", "alloc", "from a newer version", "free"];
  const table = roundTrip({
    action: columnFromArray(actions, dictionary(utf8())),
  });

  assert.deepEqual([...table.codes("action", ["alloc", "free"])], [1, 0, UNKNOWN_CODE, 1]);
  assert.deepEqual(table.texts("action"), actions);
});

test("lists of ids are read as numbers", () => {
  const table = roundTrip({
    frames: columnFromArray([[3, 1], [], [2]], list(uint32())),
  });

  assert.deepEqual(table.lists("frames"), [[3, 1], [], [2]]);
});

test("a missing column is named", () => {
  const table = roundTrip({ id: columnFromArray([1], uint32()) });

  assert.throws(() => table.numbers("stack"), /memory_events has no column stack/);
});

test("floating-point numbers and nulls are read", () => {
  const table = roundTrip({
    half: columnFromArray([0.5, null, -2], float32()),
    third: columnFromArray([1 / 3, 2, null], float64()),
  });

  assert.deepEqual([...table.numbers("half")], [0.5, NaN, -2]);
  assert.deepEqual([...table.numbers("third")], [1 / 3, 2, NaN]);
});

test("a table that is cut off, or has a column of another type, is refused", () => {
  const columns = { id: columnFromArray([1, 2, 3], uint32()) };
  const stream = tableToIPC(tableFromColumns(columns), { format: "stream" }) ?? new Uint8Array();
  const lengths = [5, 40, stream.length - 12];

  for (const cut of lengths.map((length) => new Uint8Array(stream.subarray(0, length)))) {
    assert.throws(() => new ArrowTable("streams", cut), /a table that is cut off/);
  }
  const flags = { done: columnFromArray([true, false], bool()) };
  assert.throws(() => roundTrip(flags), /column done has a type that is not supported/);
});
