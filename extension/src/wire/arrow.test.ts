import assert from "node:assert/strict";
import { test } from "node:test";

import {
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

type Columns = Record<string, ReturnType<typeof columnFromArray>>;

function streamOf(columns: Columns): Uint8Array<ArrayBuffer> {
  const stream = tableToIPC(tableFromColumns(columns), { format: "stream" });
  assert.ok(stream !== null);
  return new Uint8Array(stream);
}

function roundTrip(columns: Columns): ArrowTable {
  return new ArrowTable("memory_events", streamOf(columns));
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

test("lists of texts are read as texts", () => {
  const table = roundTrip({
    sites: columnFromArray([["f (a.py:1)", "é"], [], ["g"]], list(utf8()), { maxBatchRows: 2 }),
  });

  assert.deepEqual(table.textLists("sites"), [["f (a.py:1)", "é"], [], ["g"]]);
});

test("lists of ids are read as numbers", () => {
  const table = roundTrip({
    frames: columnFromArray([[3, 1], [], [2]], list(uint32())),
  });

  assert.deepEqual(table.lists("frames"), [[3, 1], [], [2]]);
});

test("floating-point numbers of both sizes are read, and null is no number", () => {
  const table = roundTrip({
    share: columnFromArray([0.5, null, -2.25], float64()),
    speed: columnFromArray([1.5, 2, 3], float32()),
  });

  assert.deepEqual([...table.numbers("share")], [0.5, NaN, -2.25]);
  assert.deepEqual([...table.numbers("speed")], [1.5, 2, 3]);
});

test("a stream that is cut anywhere in a batch is refused", () => {
  const stream = streamOf({ id: columnFromArray([1, 2, 3], uint32()) });
  const endBytes = 8;

  for (const missing of [1, 8, 20]) {
    const cut = stream.slice(0, stream.length - endBytes - missing);
    assert.throws(() => new ArrowTable("streams", cut), /incomplete/);
  }
});

test("a missing column is named", () => {
  const table = roundTrip({ id: columnFromArray([1], uint32()) });

  assert.throws(() => table.numbers("stack"), /memory_events has no column stack/);
});
