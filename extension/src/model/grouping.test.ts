import assert from "node:assert/strict";
import { test } from "node:test";

import { seeded } from "../../testing/seeded.ts";
import { groupRows, joined, label, medianOf, numbersOf } from "./grouping.ts";

test("groups of rows are those of a count by all keys", () => {
  const random = seeded(5);
  for (let round = 0; round < 60; round += 1) {
    const count = 1 + Math.floor(random() * 60);
    const pick = (limit: number): number[] =>
      Array.from({ length: count }, () => Math.floor(random() * limit));
    const [fromNs, lengths, left, right, kinds] = [pick(90), pick(9), pick(3), pick(3), pick(4)];
    const toNs = fromNs.map((from, row) => from + (lengths[row] ?? 0));
    const of = (values: readonly number[]) => (row: number) => values[row] ?? 0;
    const isWanted = (row: number): boolean => (fromNs[row] ?? 0) < 80;
    const pairOf = joined(of(left), of(right));
    const keyOf = (row: number): number => (isWanted(row) ? pairOf(row) : -1);
    const rows = [...fromNs.keys()].filter(isWanted);
    const labels = label(count, keyOf, of(kinds), (row) => 2 * row);
    const found = groupRows({ fromNs, toNs }, labels, undefined);

    const textOf = (row: number): string => `${left[row]} ${right[row]}`;
    assert.equal(found.length, new Set(rows.map(textOf)).size);
    for (const group of found) {
      const own = rows.filter((row) => textOf(row) === textOf(group.typical));
      const ownLengths = own.map(of(lengths));
      const oftenOf = (row: number): number =>
        own.filter((other) => kinds[other] === kinds[row]).length;
      const most = Math.max(...own.map(oftenOf));
      assert.deepEqual(group, {
        rows: Int32Array.from(own),
        values: Float64Array.from(own, (row) => 2 * row),
        typical: own.find((row) => oftenOf(row) === most),
        variants: own
          .filter((row) => own.find((other) => kinds[other] === kinds[row]) === row)
          .map((first) => ({ count: oftenOf(first), first }))
          .toSorted((one, other) => other.count - one.count),
        count: own.length,
        totalNs: ownLengths.reduce((sum, length) => sum + length, 0),
        medianNs: middleOf(ownLengths),
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

function middleOf(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((left, right) => left - right);
  const [lower = 0, upper = 0] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return lower + Math.floor((upper - lower) / 2);
}

test("a median between two whole numbers is rounded down", () => {
  for (const [values, expected] of [
    [[], undefined],
    [[5], 5],
    [[8, 1, 4], 4],
    [[10, 1, 4, 1], 2],
    [[7, 3, 3, 7], 5],
  ] as const) {
    assert.equal(medianOf(Float64Array.from(values)), expected);
  }
});

test("texts that are equal have one number, whatever their ids", () => {
  const texts = ["add", "copy", "add"];

  assert.deepEqual([0, 1, 2, 0].map(numbersOf((id) => texts[id] ?? "")), [0, 1, 0, 0]);
});
