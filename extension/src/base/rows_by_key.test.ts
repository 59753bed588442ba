import assert from "node:assert/strict";
import { test } from "node:test";

import { RowsByKey } from "./rows_by_key.ts";
import { seeded } from "../../testing/seeded.ts";

test("the rows of a key are those that a look at each finds, small keys and large ones", () => {
  const random = seeded(2);
  const keys: number[] = [];
  const rows = new RowsByKey();
  for (let batch = 0; batch < 20; batch += 1) {
    const added = Array.from({ length: 50 }, () =>
      random() < 0.3 ? 2 ** 40 + Math.floor(random() * 5) : Math.floor(random() * 20),
    );
    keys.push(...added);
    rows.append(added);
  }
  for (const key of [...Array(25).keys(), 2 ** 40 + 1, 2 ** 40 + 9]) {
    const expected = keys.flatMap((candidate, row) => (candidate === key && key > 0 ? [row] : []));

    assert.deepEqual(rows.all(key), expected);
    assert.equal(rows.last(key), expected.at(-1));
  }
});
