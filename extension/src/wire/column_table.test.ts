import assert from "node:assert/strict";
import { test } from "node:test";

import { ColumnTable } from "./column_table.ts";
import { UNKNOWN_CODE } from "./table.ts";

const TABLE = new ColumnTable("memory_events", {
  time: Float64Array.of(3, 5, 8),
  action: { texts: ["alloc", "free"], codes: Uint8Array.of(1, 0, 1) },
  name: ["a", "", "b"],
  frames: [[2, 1], [], [3]],
});

test("columns come as they were given", () => {
  assert.equal(TABLE.rows, 3);
  assert.deepEqual([...TABLE.numbers("time")], [3, 5, 8]);
  assert.deepEqual(TABLE.texts("name"), ["a", "", "b"]);
  assert.deepEqual(TABLE.texts("action"), ["free", "alloc", "free"]);
  assert.deepEqual(TABLE.lists("frames"), [[2, 1], [], [3]]);
});

test("codes are in the reader's own order", () => {
  assert.deepEqual([...TABLE.codes("action", ["free", "alloc"])], [0, 1, 0]);
  assert.deepEqual([...TABLE.codes("action", ["other", "free"])], [1, UNKNOWN_CODE, 1]);
});

test("a table without columns has none of each", () => {
  const empty = new ColumnTable("ranges");

  assert.equal(empty.rows, 0);
  assert.equal(empty.numbers("time").length, 0);
  assert.equal(empty.codes("kind", ["range"]).length, 0);
  assert.deepEqual(empty.texts("name"), []);
  assert.deepEqual(empty.lists("frames"), []);
});

test("a column that is missing or holds something else is named", () => {
  assert.throws(() => TABLE.numbers("stack"), /memory_events has no column stack/);
  assert.throws(
    () => TABLE.numbers("name"),
    /name of the table memory_events does not hold numbers/,
  );
  assert.throws(() => TABLE.texts("time"), /does not hold texts/);
  assert.throws(() => TABLE.lists("name"), /does not hold lists/);
  assert.throws(() => TABLE.codes("time", []), /does not hold coded texts/);
});
