import assert from "node:assert/strict";
import { test } from "node:test";

import { seeded } from "../base/seeded.ts";
import { pixelOf, shade } from "./colour.ts";
import { Extents } from "./extents.ts";
import { createRaster, paintIds, paintRects, rectAt, type Rects } from "./raster.ts";

const PALETTE = {
  fill: [0xff000001, 0xff000002],
  edge: [0xff000011, 0xff000012],
};

function rectsOf(edges: readonly (readonly [number, number, number, number])[]): Rects {
  return {
    count: edges.length,
    backdrop: 0,
    left: edges.map(([left]) => left),
    right: edges.map(([, right]) => right),
    top: edges.map(([, , top]) => top),
    bottom: edges.map(([, , , bottom]) => bottom),
    colour: edges.map((_, index) => index % 2),
    striped: edges.map(() => 0),
  };
}

test("ids name the last rectangle painted over each pixel", () => {
  const random = seeded(4);
  const edges = Array.from({ length: 60 }, () => {
    const left = random() * 40;
    const top = random() * 30;
    return [left, left + random() * 15, top, top + random() * 10] as const;
  });
  const raster = createRaster(80, 60);
  paintIds(raster, rectsOf(edges), { left: 5, right: 35, top: 2, bottom: 22 });
  for (let y = 0; y < raster.height; y += 1) {
    for (let x = 0; x < raster.width; x += 1) {
      const expected = edges.findLastIndex(([left, right, top, bottom]) => {
        const [x0, x1] = [Math.round(((left - 5) * 80) / 30), Math.round(((right - 5) * 80) / 30)];
        const [y0, y1] = [Math.round(((top - 2) * 60) / 20), Math.round(((bottom - 2) * 60) / 20)];
        const isSeen = right >= 5 && left < 35 && bottom >= 2 && top < 22;
        const fromX = Math.min(Math.max(x0, 0), 79);
        const fromY = Math.min(Math.max(y0, 0), 59);
        const inX = x >= fromX && x < Math.max(x1, fromX + 1);
        return isSeen && inX && y >= fromY && y < Math.max(y1, fromY + 1);
      });
      assert.equal(rectAt(raster, x, y) ?? -1, expected, `pixel ${x}, ${y}`);
    }
  }
});

test("a rectangle smaller than a pixel is still one pixel", () => {
  const raster = createRaster(10, 10);
  const rects = rectsOf([[5, 5.0001, 5, 5.0001]]);
  const viewport = { left: 0, right: 10, top: 0, bottom: 10 };
  paintRects(raster, rects, viewport, PALETTE);
  paintIds(raster, rects, viewport);

  assert.equal(raster.ids.filter((id) => id === 1).length, 1);
  assert.equal(rectAt(raster, 5, 5), 0);
  assert.notEqual(raster.pixels[55], 0);
});

test("a pixel shared by small rectangles is as strong as they cover it", () => {
  const edges: [number, number, number, number][] = [
    [0, 4, 0, 1],
    [0, 4, 0, 0.25],
    [0, 4, 0.5, 0.75],
  ];
  const rects = { ...rectsOf(edges), backdrop: 1, colour: [0, 1, 1] };
  const raster = createRaster(4, 1);
  const palette = { fill: [0xff000000, 0xff0000c8], edge: [0xff000000, 0xff0000c8] };
  const viewport = { left: 0, right: 4, top: 0, bottom: 1 };
  paintRects(raster, rects, viewport, palette);
  paintIds(raster, rects, viewport);

  assert.deepEqual([...raster.pixels], Array<number>(4).fill(0xff000064));
  assert.equal(rectAt(raster, 2, 0), 2);
});

test("striped rectangles show two colours, plain ones have an edge", () => {
  const rects = rectsOf([[0, 18, 0, 18]]);
  const viewport = { left: 0, right: 18, top: 0, bottom: 18 };
  const plain = createRaster(18, 18);
  const striped = createRaster(18, 18);
  paintRects(plain, rects, viewport, PALETTE);
  paintRects(striped, { ...rects, striped: [1] }, viewport, PALETTE);

  assert.equal(plain.pixels[0], 0xff000011);
  assert.equal(plain.pixels[9 * 18 + 9], 0xff000001);
  assert.equal(striped.pixels.filter((pixel) => pixel === 0xff000011).length, 162);
});

test("colours become the pixels of an ImageData", () => {
  assert.equal(pixelOf("#123456"), 0xff563412);
  assert.equal(shade(pixelOf("#000000"), 1), 0xffffffff);
  assert.equal(shade(pixelOf("#808080"), -1), 0xff000000);
});

test("rectangles out of sight cost nothing and those in sight are all found", () => {
  const random = seeded(12);
  const left = Array.from({ length: 5000 }, () => random() * 1000);
  const right = left.map((from) => from + random() ** 20 * 900);
  const extents = new Extents(left, right, 5000);
  for (const [low, high] of [
    [0, 1],
    [400, 410],
    [999, 1000],
    [-5, -1],
  ] as const) {
    const found = [...extents.overlapping(low, high)].flatMap(([first, last]) =>
      Array.from({ length: last - first }, (_, place) => first + place),
    );
    const inSight = left.flatMap((from, place) =>
      from <= high && (right[place] ?? 0) >= low ? [place] : [],
    );
    const isInSight = new Set(found);

    assert.deepEqual(
      found,
      [...isInSight].sort((a, b) => a - b),
    );
    assert.ok(inSight.every((place) => isInSight.has(place)));
  }
  assert.deepEqual([...extents.overlapping(-5, -1)], []);
});
