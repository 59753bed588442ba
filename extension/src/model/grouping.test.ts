import assert from "node:assert/strict";
import { test } from "node:test";

import { seeded } from "../../testing/seeded.ts";
import { groupRows, medianOf, numbersOf } from "./grouping.ts";

test("groups of rows are those of a count by all keys", () => {
  const random = seeded(5);
  for (let round = 0; round < 30; round += 1) {
    const count = 1 + Math.floor(random() * 60);
    const pick = (limit: number): number[] =>
      Array.from({ length: count }, () => Math.floor(random() * limit));
    const [fromNs, lengths, left, right, kinds] = [pick(90), pick(9), pick(3), pick(3), pick(4)];
    const toNs = fromNs.map((from, row) => from + (lengths[row] ?? 0));
    const rows = [...fromNs.keys()].filter((row) => (fromNs[row] ?? 0) < 80);
    const of = (values: readonly number[]) => (row: number) => values[row] ?? 0;
    const found = groupRows({ fromNs, toNs }, rows, [of(left), of(right)], [of(kinds)]);

    const keyOf = (row: number): string => `${left[row]} ${right[row]}`;
    assert.equal(found.length, new Set(rows.map(keyOf)).size);
    for (const group of found) {
      const own = rows.filter((row) => keyOf(row) === keyOf(group.typical));
      const ownLengths = own.map(of(lengths));
      const oftenOf = (row: number): number =>
        own.filter((other) => kinds[other] === kinds[row]).length;
      const most = Math.max(...own.map(oftenOf));
      assert.deepEqual(group, {
        rows: own,
        typical: own.find((row) => oftenOf(row) === most),
        count: own.length,
        totalNs: ownLengths.reduce((sum, length) => sum + length, 0),
        medianNs: medianOf(ownLengths),
        minNs: Math.min(...ownLengths),
        maxNs: Math.max(...ownLengths),
        longest: own[ownLengths.indexOf(Math.max(...ownLengths))],
      });
    }
    const order = found.map(({ totalNs, count: many }) => [totalNs, many] as const);
    assert.deepEqual(
      order,
      order.toSorted((one, other) => other[0] - one[0] || other[1] - one[1]),
    );
  }
});

test("a median between two whole numbers is rounded down", () => {
  assert.equal(medianOf([]), undefined);
  assert.equal(medianOf([5]), 5);
  assert.equal(medianOf([8, 1, 4]), 4);
  assert.equal(medianOf([10, 1, 4, 1]), 2);
});

test("texts that are equal have one number, whatever their ids", () => {
  const texts = ["add", "copy", "add"];

  assert.deepEqual([0, 1, 2, 0].map(numbersOf((id) => texts[id] ?? "")), [0, 1, 0, 0]);
});
