import assert from "node:assert/strict";
import { test } from "node:test";

import { archiveIn } from "./file_bytes.ts";

const ARCHIVE = new TextEncoder().encode("PK\u0003\u0004rest");
const EMBEDDED = btoa("PK\u0003\u0004rest");

function page(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

test("an archive is taken as it is, and out of a report", () => {
  const report = page(
    `\uFEFF\n<!doctype html><script>1</script><script id="gpuviz-recording" data-a="b">\n${EMBEDDED}\n</script>`,
  );

  assert.equal(archiveIn(ARCHIVE), ARCHIVE);
  assert.deepEqual(archiveIn(report), ARCHIVE);
});

test("what is wrong with another file is said", () => {
  assert.throws(() => archiveIn(page("hello")), /neither a .gpuviz file nor a report/);
  assert.throws(() => archiveIn(page("")), /neither a .gpuviz file nor a report/);
  assert.throws(() => archiveIn(page("<html></html>")), /embeds no recording/);
  assert.throws(() => archiveIn(page('<script id="gpuviz-recording">AA')), /truncated/);
  assert.throws(
    () => archiveIn(page('<script id="gpuviz-recording">%%</script>')),
    /damaged: it is not base64/,
  );
});
