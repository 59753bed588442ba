import assert from "node:assert/strict";
import { test } from "node:test";

import { KERNEL_SHADES, shadeOfKernel } from "./span_kinds.ts";

test("the shade of a kernel depends on every part of its name", () => {
  const names = ["correlate_w513_1", "correlate_w1_513", "cupy_add", "cupy_dad", "cupy_sum"];
  const shades = Array.from({ length: 800 }, (_, n) => shadeOfKernel(`kernel<${n}>`));
  const counts = Array.from(
    { length: KERNEL_SHADES },
    (_, shade) => shades.filter((each) => each === shade).length,
  );

  assert.deepEqual(names.map(shadeOfKernel), names.map(shadeOfKernel));
  assert.notEqual(shadeOfKernel("correlate_w513_1"), shadeOfKernel("correlate_w1_513"));
  assert.ok(Math.min(...counts) > 60 && Math.max(...counts) < 140, counts.join());
});
