import assert from "node:assert/strict";
import { test } from "node:test";

import { Pyramid } from "./pyramid.ts";
import { seeded } from "./seeded.ts";

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

    assert.equal(largest.find(floats, first, last), place(Math.max(...run)));
    assert.equal(largest.extreme(floats, first, last), Math.max(...run));
    assert.equal(smallest.extreme(floats, first, last), Math.min(...run));
    assert.equal(smallest.find(floats, first, last), place(Math.min(...run)));
  }
});
