import assert from "node:assert/strict";
import { test } from "node:test";

import { Pyramid } from "./pyramid.ts";
import { seeded } from "../../testing/seeded.ts";

test("the extreme of every run is the first one that a look at each value finds", () => {
  const random = seeded(11);
  const values: number[] = [];
  const largest = new Pyramid(1);
  const smallest = new Pyramid(-1);
  while (values.length < 5000) {
    const added = Math.floor(random() * 400);
    for (let index = 0; index < added; index += 1) {
      values.push(Math.floor(random() * 1000));
    }
    if (random() < 0.3) {
      values.length = Math.floor(values.length * random());
      largest.truncate(values.length);
      smallest.truncate(values.length);
    }
    const floats = Float64Array.from(values);
    largest.extend(floats);
    smallest.extend(floats);
    const first = Math.floor(random() * values.length);
    const last = first + Math.floor(random() * (values.length - first + 1));
    const run = values.slice(first, last);
    const place = (value: number): number =>
      run.length === 0 ? -1 : first + run.findIndex((candidate) => candidate === value);

    assert.equal(largest.find(first, last, floats), place(Math.max(...run)));
    assert.equal(largest.extreme(first, last, floats), Math.max(...run));
    assert.equal(smallest.extreme(first, last, floats), Math.min(...run));
    assert.equal(smallest.find(first, last, floats), place(Math.min(...run)));
  }
});

test("the extreme of how much more values are than others is found without their differences", () => {
  const random = seeded(12);
  const numbers = (): Float64Array<ArrayBuffer> =>
    Float64Array.from({ length: 3000 }, () => Math.floor(random() * 50));
  const [more, less] = [numbers(), numbers()];
  const differences = more.map((value, place) => value - (less[place] ?? 0));
  const largest = new Pyramid(1);
  largest.extend(more, less);
  for (let run = 0; run < 300; run += 1) {
    const first = Math.floor(random() * 3000);
    const last = first + 1 + Math.floor(random() * (3000 - first));
    const highest = Math.max(...differences.subarray(first, last));

    assert.equal(largest.extreme(first, last, more, less), highest);
    assert.equal(largest.find(first, last, more, less), differences.indexOf(highest, first));
  }
});
