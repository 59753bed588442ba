// Finds the names of properties that only our own code uses, which scripts of pages may shorten.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const SOURCES = fileURLToPath(new URL("src/", import.meta.url));
const DECLARED = /\b(?:readonly|get) ([a-z]+[A-Z]\w*)|^ {2}(?:async )?\*?([a-z]+[A-Z]\w*)\(/gm;
const QUOTED = /"([a-z]+[A-Z]\w*)"/g;
/** Names of browsers, and of messages of the kernel, that our code declares too. */
const SHARED = ["addTrack", "byteLength", "moveTo", "durationNs", "elapsedNs", "initialEvents"];

/** Names in camel case that classes and interfaces of pages declare, and that no text contains. */
export function ownNames(): string[] {
  const sources = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
    .filter((file) => /(?<!\.test)\.ts$/.test(file) && !file.startsWith("lab"))
    .map((file) => readFileSync(SOURCES + file, "utf8"))
    .join("\n");
  const names = [...sources.matchAll(DECLARED)].map(([, member, method]) => member ?? method ?? "");
  const quoted = [...sources.matchAll(QUOTED)].map(([, name]) => name ?? "");
  const kept = new Set([...SHARED, ...quoted]);
  return [...new Set(names)].filter((name) => !kept.has(name)).sort();
}
