import assert from "node:assert/strict";
import { test } from "node:test";

import { seeded } from "../base/seeded.ts";
import { groupsOf, medianOf, Pairs, TextNumbers, typicalRow } from "./groups.ts";

test("groups keep the order of their first rows, and their rows theirs", () => {
  const keys = [7, 3, 7, 7, 0, 3];

  assert.deepEqual(
    groupsOf(keys.keys(), (row) => keys[row] ?? 0),
    [[0, 2, 3], [1, 5], [4]],
  );
});

test("a median between two whole numbers is rounded down", () => {
  assert.equal(medianOf([]), undefined);
  assert.equal(medianOf([5]), 5);
  assert.equal(medianOf([8, 1, 4]), 4);
  assert.equal(medianOf([10, 1, 4, 1]), 2);
});

test("the typical row is the first of the most frequent kind", () => {
  const kinds = [4, 9, 9, 4, 2];

  assert.equal(
    typicalRow([0, 1, 2, 3, 4], (row) => kinds[row] ?? 0),
    0,
  );
  assert.equal(
    typicalRow([4, 1, 2], (row) => kinds[row] ?? 0),
    1,
  );
});

test("pairs have one number each", () => {
  const random = seeded(5);
  const pairs = new Pairs();
  const numbers = new Map<string, number>();
  for (let round = 0; round < 500; round += 1) {
    const [left, right] = [Math.floor(random() * 9), Math.floor(random() * 9)];
    const number = pairs.of(left, right);
    assert.equal(numbers.get(`${left} ${right}`) ?? number, number);
    numbers.set(`${left} ${right}`, number);
  }
  assert.equal(new Set(numbers.values()).size, numbers.size);
});

test("texts that are equal have one number, whatever their ids", () => {
  const texts = ["add", "copy", "add"];
  const numbers = new TextNumbers((id) => texts[id] ?? "");

  assert.deepEqual(
    [0, 1, 2, 0].map((id) => numbers.of(id)),
    [0, 1, 0, 0],
  );
});
