import assert from "node:assert/strict";
import { test } from "node:test";

import { NOTHING, NumberMap } from "./number_map.ts";
import { seeded } from "../../testing/seeded.ts";

test("a number map knows what a Map knows, whatever is set and deleted", () => {
  const random = seeded(21);
  const known = new Map<number, number>();
  const map = new NumberMap();
  const keys = Array.from({ length: 900 }, (_, place) => 0x7f00_0000_0000 + place * 512);
  for (let step = 0; step < 20_000; step += 1) {
    const key = keys[Math.floor(random() * keys.length)] ?? 0;
    if (random() < 0.5) {
      known.set(key, step);
      map.set(key, step);
    } else {
      known.delete(key);
      map.delete(key);
    }
    const asked = keys[Math.floor(random() * keys.length)] ?? 0;
    assert.equal(map.get(asked), known.get(asked) ?? NOTHING, `step ${step}`);
  }
  assert.deepEqual(
    keys.map((key) => map.get(key)),
    keys.map((key) => known.get(key) ?? NOTHING),
  );
});
