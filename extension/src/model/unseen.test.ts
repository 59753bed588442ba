import assert from "node:assert/strict";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import { Unseen } from "./unseen.ts";

test("the latest spans count, as far as they are in a window", () => {
  const unseen = new Unseen();
  unseen.append(tableOf("unseen_spans", { time: [10], end: [15] }));
  unseen.append(tableOf("unseen_spans", { time: [10, 40], end: [20, 60] }));

  assert.deepEqual(unseen.spans, [
    { fromNs: 10, toNs: 20 },
    { fromNs: 40, toNs: 60 },
  ]);
  assert.equal(unseen.timeIn(15, 50), 15);
  assert.equal(unseen.timeIn(20, 40), 0);
});
