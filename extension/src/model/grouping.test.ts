import assert from "node:assert/strict";
import { test } from "node:test";

import { seeded } from "../../testing/seeded.ts";
import { Counts, Groups, joined, numbersOf } from "./grouping.ts";

test("groups of rows are those of a count by all keys, in whatever batches the rows come", () => {
  const random = seeded(5);
  for (let round = 0; round < 30; round += 1) {
    const count = 1 + Math.floor(random() * 60);
    const pick = (limit: number): number[] =>
      Array.from({ length: count }, () => Math.floor(random() * limit));
    const [fromNs, lengths, left, right, kinds] = [pick(90), pick(9), pick(3), pick(3), pick(4)];
    const toNs = fromNs.map((from, row) => from + (lengths[row] ?? 0));
    const all = [...fromNs.keys()].filter((row) => (fromNs[row] ?? 0) < 80);
    const of = (values: readonly number[]) => (row: number) => values[row] ?? 0;
    const keyOf = joined(of(left), of(right));
    const groups = new Groups({ fromNs, toNs }, keyOf, of(kinds), () => ({ rows: [] as number[] }));
    const middle = Math.floor(random() * all.length);
    for (const [begin, end] of [
      [0, middle],
      [middle, all.length],
    ] as const) {
      all.slice(begin, end).forEach((row) => groups.add(row).rows.push(row));
      const rows = all.slice(0, end);
      const found = groups.all();

      const textOf = (row: number): string => `${left[row]} ${right[row]}`;
      assert.equal(found.length, new Set(rows.map(textOf)).size);
      for (const group of found) {
        const own = rows.filter((row) => textOf(row) === textOf(group.typical));
        const ownLengths = own.map(of(lengths));
        const oftenOf = (row: number): number =>
          own.filter((other) => kinds[other] === kinds[row]).length;
        const most = Math.max(...own.map(oftenOf));
        assert.deepEqual(group, {
          rows: own,
          typical: own.find((row) => oftenOf(row) === most),
          variants: own
            .filter((row) => own.find((other) => kinds[other] === kinds[row]) === row)
            .map((first) => ({ count: oftenOf(first), first }))
            .toSorted((one, other) => other.count - one.count),
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
  }
});

function medianOf(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((left, right) => left - right);
  const [lower = 0, upper = 0] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return lower + Math.floor((upper - lower) / 2);
}

test("a row whose kind is known only later counts as of that kind", () => {
  const kinds = [0, 0, 1];
  const times = { fromNs: [1, 2, 3], toNs: [2, 3, 4] };
  const groups = new Groups(
    times,
    () => 0,
    (row) => kinds[row] ?? 0,
    () => ({}),
  );
  [0, 1, 2].forEach((row) => groups.add(row));
  const before = groups.all()[0]?.typical;
  kinds[1] = 1;
  groups.changeKind(1, 0);

  assert.equal(before, 0);
  assert.equal(groups.all()[0]?.typical, 1);
});

test("a median between two whole numbers is rounded down", () => {
  for (const [values, expected] of [
    [[], undefined],
    [[5], 5],
    [[8, 1, 4], 4],
    [[10, 1, 4, 1], 2],
    [[7, 3, 3, 7], 5],
  ] as const) {
    const counts = new Counts();
    values.forEach((value) => counts.add(value));
    assert.equal(counts.median, expected);
  }
});

test("texts that are equal have one number, whatever their ids", () => {
  const texts = ["add", "copy", "add"];

  assert.deepEqual([0, 1, 2, 0].map(numbersOf((id) => texts[id] ?? "")), [0, 1, 0, 0]);
});
