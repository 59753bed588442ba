import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { ownNames } from "./own_names.ts";

/** Every word in the declarations of the language and of browsers. */
function wordsOfBrowsers(): Set<string> {
  const folder = dirname(fileURLToPath(import.meta.resolve("typescript")));
  const files = readdirSync(folder).filter((file) => /^lib\.(es|dom)/.test(file));
  const texts = files.map((file) => readFileSync(`${folder}/${file}`, "utf8"));
  return new Set(texts.flatMap((text) => text.match(/\w+/g) ?? []));
}

test("no name that is shortened is one that browsers know", () => {
  const words = wordsOfBrowsers();

  assert.deepEqual(
    ownNames().filter((name) => words.has(name)),
    [],
  );
  assert.ok(words.has("textContent"));
});

test("names that a text contains stay, as what is looked up by it", () => {
  const names = ownNames();

  assert.ok(names.includes("endNs"));
  assert.ok(!names.includes("pendingFree"));
});
