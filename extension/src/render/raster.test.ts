import assert from "node:assert/strict";
import { test } from "node:test";

import { Extents } from "../base/extents.ts";
import { seeded } from "../../testing/seeded.ts";
import { pixelOf, shade } from "./colour.ts";
import { PlacedRows } from "./placed_rows.ts";
import { createRaster, findRect, paintRects, type Raster, type Rects } from "./raster.ts";

const PALETTE = {
  fill: [0xff000001, 0xff000002],
  edge: [0xff000011, 0xff000012],
};

type Edges = readonly (readonly [left: number, right: number, top: number, bottom: number])[];

/** Rectangles placed in a raster of a height, whose rows range from `top` to `bottom`. */
function rectsOf(edges: Edges, height: number, top: number, bottom: number): Rects {
  const rows = new PlacedRows();
  rows.begin(height, top, bottom, 0);
  for (const [, , from, to] of edges) {
    rows.push(from, to);
  }
  const left = edges.map(([from]) => from);
  const right = edges.map(([, to]) => to);
  const extents = new Extents();
  extents.extend(left, right, edges.length);
  return {
    count: edges.length,
    left,
    right,
    rows,
    colour: edges.map((_, index) => index % 2),
    palette: PALETTE,
    extents,
    isStriped: () => false,
    isBackdrop: false,
  };
}

const PIXEL_OF_COLOUR = [0xff000001, 0xff000002];

function randomEdges(seed: number, count: number): Edges {
  const random = seeded(seed);
  return Array.from({ length: count }, () => {
    const left = random() * 40;
    const top = random() * 30;
    return [left, left + random() ** 3 * 15, top, top + random() ** 3 * 10] as const;
  });
}

/** Whether a rectangle covers a pixel of a raster of 80 x 60 that shows [5, 35) x [2, 22). */
function isAt([left, right, top, bottom]: Edges[number], x: number, y: number): boolean {
  const [x0, x1] = [Math.round(((left - 5) * 80) / 30), Math.round(((right - 5) * 80) / 30)];
  const [y0, y1] = [Math.round(((top - 2) * 60) / 20), Math.round(((bottom - 2) * 60) / 20)];
  const isSeen = right >= 5 && left < 35 && bottom >= 2 && top < 22;
  const fromX = Math.min(Math.max(x0, 0), 79);
  const fromY = Math.min(Math.max(y0, 0), 59);
  const inX = x >= fromX && x < Math.max(x1, fromX + 1);
  return isSeen && inX && y >= fromY && y < Math.max(y1, fromY + 1);
}

function eachPixel(raster: Raster, visit: (x: number, y: number) => void): void {
  for (let y = 0; y < raster.height; y += 1) {
    for (let x = 0; x < raster.width; x += 1) {
      visit(x, y);
    }
  }
}

test("what is found at each pixel is the last rectangle that is painted there", () => {
  const edges = randomEdges(4, 600);
  const rects = rectsOf(edges, 60, 2, 22);
  eachPixel(createRaster(80, 60), (x, y) => {
    const expected = edges.findLastIndex((rect) => isAt(rect, x, y));
    const found = findRect(rects, { left: 5, right: 35 }, 80, x + 0.4, y + 0.6);
    assert.equal(found ?? -1, expected, `pixel ${x}, ${y}`);
  });
});

test("every pixel that a rectangle covers is painted, and no other", () => {
  const edges = randomEdges(5, 90);
  const raster = createRaster(80, 60);
  paintRects(raster, [rectsOf(edges, 60, 2, 22)], { left: 5, right: 35 });
  eachPixel(raster, (x, y) => {
    const isPainted = (raster.pixels[y * 80 + x] ?? 0) !== 0;
    assert.equal(
      isPainted,
      edges.some((rect) => isAt(rect, x, y)),
      `pixel ${x}, ${y}`,
    );
  });
});

test("a rectangle smaller than a pixel is still one pixel, however long the axis", () => {
  const raster = createRaster(10, 10);
  const rects = rectsOf([[5e12, 5e12 + 1, 5, 5.0001]], 10, 0, 10);
  const viewport = { left: 0, right: 1e13 };
  paintRects(raster, [rects], viewport);

  assert.deepEqual(
    [...raster.pixels.keys()].filter((pixel) => raster.pixels[pixel] !== 0),
    [55],
  );
  assert.equal(findRect(rects, viewport, 10, 5, 5), 0);
});

test("a rectangle that goes on without end reaches the edge", () => {
  const raster = createRaster(6, 1);
  const rects = rectsOf([[2, Infinity, 0, 1]], 1, 0, 1);
  paintRects(raster, [rects], { left: 0, right: 6 });

  assert.deepEqual([...raster.pixels], [0, 0, ...Array<number>(4).fill(0xff000001)]);
  assert.equal(findRect(rects, { left: 0, right: 6 }, 6, 5, 0), 0);
});

test("a pixel shared by small rectangles is as strong as they cover it", () => {
  const palette = { fill: [0xff000000, 0xff0000c8], edge: [0xff000000, 0xff0000c8] };
  const ground = { ...rectsOf([[0, 4, 0, 1]], 1, 0, 1), palette, isBackdrop: true };
  const small: Edges = [
    [0, 4, 0, 0.25],
    [0, 4, 0.5, 0.75],
  ];
  const raster = createRaster(4, 1);
  const rects = { ...rectsOf(small, 1, 0, 1), palette, colour: [1, 1] };
  paintRects(raster, [ground, rects], { left: 0, right: 4 });

  assert.deepEqual([...raster.pixels], Array<number>(4).fill(0xff000064));
});

test("striped rectangles show two colours, plain ones have an edge", () => {
  const rects = rectsOf([[0, 18, 0, 18]], 18, 0, 18);
  const viewport = { left: 0, right: 18 };
  const plain = createRaster(18, 18);
  const striped = createRaster(18, 18);
  paintRects(plain, [rects], viewport);
  paintRects(striped, [{ ...rects, isStriped: () => true }], viewport);

  assert.equal(plain.pixels[0], 0xff000011);
  assert.equal(plain.pixels[9 * 18 + 9], PIXEL_OF_COLOUR[0]);
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
  const extents = new Extents();
  // Some intervals are open at first, and visible until they have an end.
  const until = right.map((to, place) => (place % 7 === 0 ? Infinity : to));
  extents.extend(left, until, 3000);
  extents.extend(left, until, 5000);
  assert.ok([...extents.overlapping(2000, 3000)].length > 0);
  until.forEach((to, place) => {
    if (to === Infinity) {
      until[place] = right[place] ?? 0;
      extents.touch(place);
    }
  });
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
