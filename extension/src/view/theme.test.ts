import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { luminance, pixelOf } from "../render/colour.ts";
import { inkOn } from "./theme.ts";

type Palette = ReadonlyMap<string, string>;

/** The palettes in the order of the file; what one leaves out is that of the light one. */
function palettes(): Palette[] {
  const css = readFileSync(new URL("./theme.css", import.meta.url), "utf8");
  return [...css.matchAll(/:root[^{]*\{([^}]*)\}/g)].map(
    ([, body = ""]) =>
      new Map(
        [...body.matchAll(/--gpuviz-([\w-]+): (#\w+);/g)].map(([, name = "", hex = ""]) => [
          name,
          hex,
        ]),
      ),
  );
}

function contrast(left: string, right: string): number {
  const [low = 0, high = 0] = [left, right]
    .map((hex) => luminance(pixelOf(hex)))
    .sort((one, other) => one - other);
  return (high + 0.05) / (low + 0.05);
}

function tooClose(
  palette: Palette,
  names: readonly string[],
  grounds: readonly string[],
  least: number,
): string[] {
  return names.flatMap((name) =>
    grounds
      .filter((ground) => contrast(palette.get(name) ?? "", palette.get(ground) ?? "") < least)
      .map((ground) => `${name} on ${ground}`),
  );
}

const isMark = (name: string): boolean => /^(category|kind|kernel|order)-/.test(name);
const LINES = ["accent", "alarm", "reserved", "allocated", "active", "requested", "used"];
const LEAST_TEXT = [4.5, 4.5, 7, 7];
const LEAST_MARK = [3, 3, 4.5, 4.5];

test("every palette has the same colours", () => {
  const [light, ...others] = palettes();

  assert.equal(others.length, 3);
  for (const palette of others) {
    assert.deepEqual([...palette.keys()], [...(light?.keys() ?? [])]);
  }
});

test("text can be read on every ground in every palette", () => {
  const found = palettes().map((palette, place) =>
    tooClose(palette, ["text", "muted"], ["background", "panel", "ground"], LEAST_TEXT[place] ?? 0),
  );

  assert.deepEqual(found, [[], [], [], []]);
});

test("marks stand out from the background in every palette", () => {
  const found = palettes().map((palette, place) => {
    const marks = [...palette.keys()].filter(isMark);
    const names = [...marks, ...LINES, "cached-edge"];
    return tooClose(palette, names, ["background"], LEAST_MARK[place] ?? 0);
  });

  assert.deepEqual(found, [[], [], [], []]);
});

test("names on spans and bands can be read in every palette", () => {
  const found = palettes().flatMap((palette) =>
    [...palette]
      .filter(([name]) => /^(category|kind|kernel)-/.test(name))
      .filter(([, hex]) => contrast(hex, inkOn(hex)) < 4.5)
      .map(([name]) => name),
  );

  assert.deepEqual(found, []);
});

/** What people without one kind of cone see of linear red, green and blue (Machado et al. 2009). */
const VISIONS = [
  [1, 0, 0, 0, 1, 0, 0, 0, 1],
  [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
];
const TO_CONES = [
  0.4122214708, 0.5363325363, 0.0514459929, 0.2119034982, 0.6806995451, 0.1073969566, 0.0883024619,
  0.2817188376, 0.6299787005,
];
const TO_OKLAB = [
  0.2104542553, 0.793617785, -0.0040720468, 1.9779984951, -2.428592205, 0.4505937099, 0.0259040371,
  0.7827717662, -0.808675766,
];

function times(matrix: readonly number[], vector: readonly number[]): number[] {
  return [0, 3, 6].map((row) =>
    vector.reduce((sum, value, column) => sum + value * (matrix[row + column] ?? 0), 0),
  );
}

/** A colour in OKLab, where distances are those that people see. */
function seen(hex: string, vision: readonly number[]): number[] {
  const linear = [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const clipped = times(vision, linear).map((value) => Math.min(Math.max(value, 0), 1));
  return times(TO_OKLAB, times(TO_CONES, clipped).map(Math.cbrt));
}

function nearest(colours: readonly string[], isNext: boolean): number {
  const distances = VISIONS.flatMap((vision) => {
    const places = colours.map((hex) => seen(hex, vision));
    return places.flatMap((place, at) =>
      (isNext ? places.slice(at + 1, at + 2) : places.slice(at + 1)).map((other) =>
        Math.hypot(...place.map((value, axis) => value - (other[axis] ?? 0))),
      ),
    );
  });
  return Math.min(...distances);
}

test("categories differ for people with any colour vision, neighbours most", () => {
  for (const palette of palettes()) {
    const colours = [...palette].filter(([name]) => name.startsWith("category-"));
    const hexes = colours.map(([, hex]) => hex);

    assert.equal(hexes.length, 10);
    assert.ok(nearest(hexes, false) > 0.06);
    assert.ok(nearest(hexes, true) > 0.13);
  }
});
