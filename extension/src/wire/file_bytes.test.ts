import assert from "node:assert/strict";
import { test } from "node:test";

import { sourceOfBytes } from "./byte_source.ts";
import { archiveIn } from "./file_bytes.ts";

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

test("what is wrong with another file is said", async () => {
  await assert.rejects(readAs("hello"), /neither a .gpuviz file nor a report/);
  await assert.rejects(readAs(""), /neither a .gpuviz file nor a report/);
  await assert.rejects(readAs("<html></html>"), /embeds no recording/);
  await assert.rejects(readAs('<script id="gpuviz-recording">AA'), /truncated/);
  await assert.rejects(
    readAs('<script id="gpuviz-recording">%%</script>'),
    /damaged: it is not base64/,
  );
});
