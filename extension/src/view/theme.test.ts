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

const isMark = (name: string): boolean => /^(category|kind|order)-/.test(name);
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

test("names on spans can be read in every palette", () => {
  const found = palettes().flatMap((palette) =>
    [...palette]
      .filter(([name]) => name.startsWith("kind-"))
      .filter(([, hex]) => contrast(hex, inkOn(hex)) < 4.5)
      .map(([name]) => name),
  );

  assert.deepEqual(found, []);
});
