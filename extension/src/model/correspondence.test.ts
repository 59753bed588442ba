import assert from "node:assert/strict";
import { test } from "node:test";

import { BACKWARD_OF } from "../wire/codes.ts";
import { BlockGroups } from "./block_groups.ts";
import { COLOURED, type Categories } from "./categories.ts";
import { inPlacesOf, lineKeys, paired, type Corresponding } from "./correspondence.ts";
import { describeFrame, siteText } from "./stacks.ts";

const FOUND: Corresponding = {
  anchors: [],
  kernels: {},
  lines: [
    [
      ["work", "a/run.py", 3],
      ["work", "b/run.py", 5],
    ],
    [["work", "a/run.py", 5], null],
    [null, ["work", "b/run.py", 3]],
  ],
};

test("the same line has one key before and after, another line of the same place another", () => {
  const [before, after] = lineKeys(FOUND);
  const same = { name: "work", filename: "a/run.py", line: 3 };
  const moved = { name: "work", filename: "b/run.py", line: 5 };

  for (const text of [siteText, describeFrame]) {
    assert.equal(before(text(same)), after(text(moved)));
    assert.equal(before(`${BACKWARD_OF}${text(same)}`), after(`${BACKWARD_OF}${text(moved)}`));
    assert.notEqual(before(`${BACKWARD_OF}${text(same)}`), before(text(same)));
    const [gone, added] = [
      { ...same, line: 5 },
      { ...moved, line: 3 },
    ].map(text);
    assert.notEqual(before(gone ?? ""), after(added ?? ""));
  }
  assert.equal(before("(no call stack)"), after("(no call stack)"));
});

test("rows of one key are one row, others have one side", () => {
  const pairs = paired(["a", "b"], ["B", "c"], [(row) => row, (row) => row.toLowerCase()]);

  assert.deepEqual(pairs, [
    { key: "a", before: "a", after: undefined },
    { key: "b", before: "b", after: "B" },
    { key: "c", before: undefined, after: "c" },
  ]);
});

/** Categories of these labels, whose groups are in their order. */
function categories(labels: readonly string[]): Categories {
  const all = labels.map((label, place) => {
    return { label, short: label, long: label, bytesAtPeak: 10 - place };
  });
  const ofGroup = Uint8Array.from(labels, (_, place) => place);
  return { all, groups: {} as BlockGroups, ofGroup, isOrdered: false };
}

const LABELS = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

test("a category has the place of the same one before, others have free places", () => {
  const same = [(label: string) => label, (label: string) => label.toLowerCase()] as const;
  const place = (before: readonly string[], after: readonly string[]): unknown => {
    const found = inPlacesOf(categories(before), categories(after), same);
    return [found.all.map(({ label }) => label), [...found.ofGroup]];
  };

  assert.deepEqual(place(["a", "b", "c"], ["C", "x", "A"]), [
    ["A", "b", "C", "x"],
    [2, 3, 0],
  ]);
  assert.deepEqual(place([], ["a", "b"]), [
    ["a", "b"],
    [0, 1],
  ]);
  // The last of ten collects the rest.
  const turned = [...LABELS.slice(1, COLOURED), "x", "rest"];
  assert.deepEqual(place(LABELS, turned), [
    ["x", ...LABELS.slice(1, COLOURED), "rest"],
    [1, 2, 3, 4, 5, 6, 7, 8, 0, 9],
  ]);
});
