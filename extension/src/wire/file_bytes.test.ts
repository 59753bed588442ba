import assert from "node:assert/strict";
import { test } from "node:test";

import { sourceOfBytes } from "./byte_source.ts";
import { archiveIn, isPickle } from "./file_bytes.ts";

const ARCHIVE = new TextEncoder().encode("PK\u0003\u0004rest");

async function readAs(text: string): Promise<Uint8Array> {
  const archive = await archiveIn(sourceOfBytes(new TextEncoder().encode(text)));
  return archive.slice(0, archive.byteLength);
}

test("an archive is taken as it is, and out of a report", async () => {
  const script = `<script id="gpuviz-recording" data-a="b">\n${btoa("PK\u0003\u0004rest")}\n</script>`;

  assert.deepEqual(await readAs("PK\u0003\u0004rest"), ARCHIVE);
  assert.deepEqual(await readAs(`\uFEFF\n<!doctype html><script>1</script>${script}`), ARCHIVE);
});

test("the end of an archive may come before the rest of it", async () => {
  const end = `<script id="gpuviz-recording-end" data-from="3">${btoa("\u0004rest")}</script>`;
  const start = `<script id="gpuviz-recording">${btoa("PK\u0003")}</script>`;

  assert.deepEqual(await readAs(`<html>${end}${start}</html>`), ARCHIVE);
  await assert.rejects(readAs(`<html>${start}<script id="gpuviz-recording-end">AA`), /truncated/);
});

test("what is wrong with another file is said", async () => {
  await assert.rejects(readAs("hello"), /neither a .gpuviz file, a gpuviz report nor/);
  await assert.rejects(readAs(""), /neither a .gpuviz file, a gpuviz report nor/);
  await assert.rejects(readAs("<html></html>"), /truncated, or not a gpuviz report/);
  await assert.rejects(readAs('<script id="gpuviz-recording">AA'), /truncated/);
  await assert.rejects(
    readAs('<script id="gpuviz-recording">%%</script>'),
    /damaged: it is not base64/,
  );
});

test("a pickle of protocol 2 or later is known by its first bytes", async () => {
  const isOne = (...bytes: number[]): Promise<boolean> =>
    isPickle(sourceOfBytes(Uint8Array.from(bytes)));

  assert.equal(await isOne(0x80, 2, 0x4e), true);
  assert.equal(await isOne(0x80, 5), true);
  assert.equal(await isOne(0x80, 1), false);
  assert.equal(await isOne(0x80), false);
  assert.equal(await isOne(0x50, 0x4b), false);
  assert.equal(await isOne(), false);
});
