// Usage: node snapshot_columns.ts MODULE FILE..., with a JSON object of tables on standard input:
// their columns, each with how it is read. Prints a line of JSON for each snapshot: its manifest
// and columns, or the error.
import { readFile } from "node:fs/promises";

import { sourceOfBytes } from "../src/wire/byte_source.ts";
import type { ArrowTable } from "../src/wire/arrow.ts";
import { readSnapshot } from "../src/wire/snapshot_reader.ts";

type Kind = "lists" | "numbers" | "texts";

async function standardInput(): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of process.stdin) {
    pieces.push(piece as Buffer);
  }
  return Buffer.concat(pieces).toString();
}

async function columnsOf(
  parts: AsyncIterable<ArrowTable>,
  kinds: Readonly<Record<string, Kind>>,
): Promise<Record<string, unknown[]>> {
  const columns = Object.fromEntries(Object.keys(kinds).map((name) => [name, [] as unknown[]]));
  for await (const part of parts) {
    for (const [name, kind] of Object.entries(kinds)) {
      for (const value of part[kind](name)) {
        columns[name]?.push(value);
      }
    }
  }
  return columns;
}

const [, , path = "", ...files] = process.argv;
const tables = JSON.parse(await standardInput()) as Record<string, Record<string, Kind>>;
const module = new Uint8Array(await readFile(path));
for (const file of files) {
  try {
    const bytes = new Uint8Array(await readFile(file));
    const recording = await readSnapshot(module, sourceOfBytes(bytes));
    const columns: Record<string, unknown> = {};
    for (const [name, kinds] of Object.entries(tables)) {
      columns[name] = await columnsOf(recording.parts(name), kinds);
    }
    console.log(JSON.stringify({ manifest: recording.manifest, columns }));
  } catch (error) {
    console.log(JSON.stringify({ error: error instanceof Error ? error.message : String(error) }));
  }
}
