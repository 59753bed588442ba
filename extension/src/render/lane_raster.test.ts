import assert from "node:assert/strict";
import { test } from "node:test";

import { paintLane, Pattern } from "./lane_raster.ts";
import { createRaster, idAt } from "./raster.ts";

const PALETTE = {
  fill: [0xff000001, 0xff000002],
  edge: [0xff000011, 0xff000012],
  pattern: [Pattern.plain, Pattern.upright],
};

test("a column is filled from below as high as spans take it", () => {
  const raster = createRaster(3, 10);
  const strip = { fromY: 0, toY: 10, share: [0.5, 0, 0.01], span: [4, -1, 5], firstId: 100 };
  paintLane(raster, { ...strip, placeOf: () => 0 }, PALETTE);
  const column = (x: number): number[] =>
    Array.from({ length: 10 }, (_, y) => raster.pixels[y * 3 + x] ?? 0);

  assert.deepEqual(column(0), [
    ...Array<number>(5).fill(0x48000001),
    ...Array<number>(5).fill(0xff000001),
  ]);
  assert.deepEqual(column(1), Array<number>(10).fill(0));
  assert.equal(column(2).filter((pixel) => pixel === 0xff000001).length, 2);
  assert.equal(idAt(raster, 0, 0), 104);
  assert.equal(idAt(raster, 1, 5), undefined);
  assert.equal(idAt(raster, 2, 9), 105);
});

test("a wide span begins with an edge, and kinds have signs", () => {
  const raster = createRaster(8, 4);
  const columns = { share: Array<number>(8).fill(1), span: [0, 0, 0, 0, 1, 1, 1, 1] };
  paintLane(raster, { fromY: 1, toY: 3, ...columns, placeOf: (span) => span, firstId: 0 }, PALETTE);

  assert.deepEqual([...raster.pixels.subarray(0, 8)], Array<number>(8).fill(0));
  assert.deepEqual(
    [...raster.pixels.subarray(8, 16)],
    [
      0xff000011, 0xff000001, 0xff000001, 0xff000001, 0xff000012, 0xff000002, 0xff000002,
      0xff000002,
    ],
  );
});
