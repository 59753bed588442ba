import assert from "node:assert/strict";
import { test } from "node:test";

import { ArrowTable } from "../wire/arrow.ts";
import type { RecordingFile } from "../wire/recording_file.ts";
import { Conclusions } from "./conclusions.ts";

test("a recording without conclusions has none of any device", async () => {
  const file = { table: async (name: string) => new ArrowTable(name) } as unknown as RecordingFile;
  const found = await Conclusions.of(file);

  assert.deepEqual(found.said(0), []);
  assert.deepEqual(found.iterations(0), []);
  assert.deepEqual(found.otherMemory(0), []);
  assert.deepEqual(found.sections(0), []);
  assert.equal(found.devices, undefined);
});
