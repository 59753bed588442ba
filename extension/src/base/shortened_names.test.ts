import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";

test("no property that the build gives a short name is asked for by a text", () => {
  const root = new URL("../../", import.meta.url);
  const build = readFileSync(new URL("build.mjs", root), "utf8");
  const [, ends = ""] = /mangleProps: \/\((.*)\)\$\//.exec(build) ?? [];
  const asText = new RegExp(`(?<!dataset\\[|Options\\[)["']\\w+(${ends})["']`, "g");
  const files = globSync("src/**/*.ts", { cwd: root.pathname });
  const found = files
    .filter((file) => !file.endsWith(".test.ts"))
    .flatMap((file) => readFileSync(new URL(file, root), "utf8").match(asText) ?? []);

  assert.equal(ends.split("|").length, 11);
  assert.equal(files.length > 100, true);
  assert.deepEqual(found, []);
});
