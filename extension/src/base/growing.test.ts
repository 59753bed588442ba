import assert from "node:assert/strict";
import { test } from "node:test";

import { GrowingWholes } from "./growing.ts";
import { seeded } from "../../testing/seeded.ts";

test("whole numbers are kept as they are, in as few bytes each as the largest needs", () => {
  const widths: [largest: number, bytes: number][] = [
    [255, 1],
    [256, 2],
    [65_535, 2],
    [65_536, 4],
    [2 ** 32 - 1, 4],
    [2 ** 32, 8],
    [-1, 8],
    [0.5, 8],
    [Infinity, 8],
  ];
  for (const [largest, bytes] of widths) {
    const values = [7, 0, largest, 3];
    const pushed = new GrowingWholes(2);
    const appended = new GrowingWholes(2);
    const set = new GrowingWholes(2);
    values.forEach((value) => pushed.push(value));
    appended.append(values);
    set.append([7, 0, 0, 3]);
    set.set(2, largest);

    for (const column of [pushed, appended, set]) {
      assert.deepEqual([...column.view()], values);
      assert.equal(column.view().BYTES_PER_ELEMENT, bytes, String(largest));
    }
  }
});

test("whole numbers stay when later ones need more room", () => {
  const random = seeded(3);
  const column = new GrowingWholes(4);
  const expected: number[] = [];
  for (let batch = 0; batch < 40; batch += 1) {
    const values = Array.from({ length: 50 }, () => Math.floor(random() * 2 ** batch));
    column.append(values);
    expected.push(...values);
    assert.deepEqual([...column.view()], expected);
  }
});
