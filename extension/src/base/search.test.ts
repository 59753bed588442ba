import assert from "node:assert/strict";
import { test } from "node:test";

import { countAtMost, countBelow } from "./search.ts";
import { seeded } from "../../testing/seeded.ts";

test("counts are those of a look at each value, wherever the search starts", () => {
  const random = seeded(3);
  for (let round = 0; round < 200; round += 1) {
    const values = Array.from({ length: Math.floor(random() * 40) }, () =>
      Math.floor(random() * 20),
    );
    values.sort((left, right) => left - right);
    const value = Math.floor(random() * 22) - 1;
    const atMost = values.filter((candidate) => candidate <= value).length;
    const below = values.filter((candidate) => candidate < value).length;

    assert.equal(countAtMost(values, value), atMost);
    assert.equal(countAtMost(values, value, Math.floor(random() * (atMost + 1))), atMost);
    assert.equal(countBelow(values, value, Math.floor(random() * (below + 1))), below);
  }
});
