import assert from "node:assert/strict";
import { test } from "node:test";

import {
  columnFromArray,
  dictionary,
  int64,
  tableFromColumns,
  tableToIPC,
  utf8,
} from "@uwdata/flechette";

import { ArrowTable } from "./arrow.ts";
import { recordBatches } from "./arrow_stream.ts";

async function* piecesOf(
  bytes: Uint8Array<ArrayBuffer>,
  length: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (let from = 0; from < bytes.length; from += length) {
    yield await Promise.resolve(bytes.slice(from, from + length));
  }
}

async function tablesOf(rows: number, pieceBytes: number): Promise<ArrowTable[]> {
  const names = Array.from({ length: rows }, (_, row) => (row % 3 === 0 ? "alloc" : "oom"));
  const columns = {
    time: columnFromArray(
      Array.from(names, (_, row) => BigInt(row)),
      int64(),
      { maxBatchRows: 7 },
    ),
    action: columnFromArray(names, dictionary(utf8()), { maxBatchRows: 7 }),
  };
  const stream = tableToIPC(tableFromColumns(columns), { format: "stream" });
  assert.ok(stream !== null);
  const tables: ArrowTable[] = [];
  for await (const part of recordBatches(piecesOf(new Uint8Array(stream), pieceBytes))) {
    tables.push(new ArrowTable("memory_events", part));
  }
  return tables;
}

test("a stream that comes in pieces of any length is read batch by batch", async () => {
  for (const pieceBytes of [1, 5, 64, 1000, 1e6]) {
    const tables = await tablesOf(24, pieceBytes);

    assert.deepEqual(
      tables.map((table) => table.rows),
      [7, 7, 7, 3],
    );
    assert.deepEqual(
      tables.flatMap((table) => [...table.numbers("time")]),
      Array.from({ length: 24 }, (_, row) => row),
    );
    assert.deepEqual(
      tables.flatMap((table) => [...table.codes("action", ["alloc", "oom"])]),
      Array.from({ length: 24 }, (_, row) => (row % 3 === 0 ? 0 : 1)),
    );
  }
});
