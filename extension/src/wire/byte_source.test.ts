import assert from "node:assert/strict";
import { test } from "node:test";

import { sourceOfBase64 } from "./byte_source.ts";

test("any part of base64 text is the part of the bytes behind it", async () => {
  for (const length of [0, 1, 2, 3, 11, 12, 13]) {
    const bytes = Uint8Array.from({ length }, (_, place) => (place * 37) % 256);
    const source = sourceOfBase64(`\n${Buffer.from(bytes).toString("base64")}\n`);
    assert.equal(source.byteLength, length);
    for (let from = 0; from <= length; from += 1) {
      for (let to = from; to <= length; to += 1) {
        assert.deepEqual([...(await source.slice(from, to))], [...bytes.subarray(from, to)]);
      }
    }
  }
});
