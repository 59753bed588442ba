// Reads the pickles whose paths come line by line; tests/integration/formats drive it. Answers a line
// of JSON for each: the tables of a snapshot, or after "value " the plain value.
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";

import { TorchRecording } from "../src/formats/torch_recording.ts";
import { readPickle } from "../src/wire/pickle.ts";
import { OTHER, PickleFloat, PickleItems, type PickleValue } from "../src/wire/pickle_value.ts";

const NUMBERS: Readonly<Record<string, readonly string[]>> = {
  memory_events: "time address size requested_size device stream pool stack range".split(" "),
  streams: ["id", "device", "handle"],
  pools: ["id"],
  frames: ["id", "line"],
  stacks: ["id"],
  ranges: ["id", "time", "end", "name", "thread", "parent"],
  strings: ["id"],
};
const TEXTS: Readonly<Record<string, readonly string[]>> = {
  memory_events: ["action"],
  streams: ["name"],
  pools: ["segment_type"],
  frames: ["name", "filename", "source"],
  ranges: ["kind"],
  strings: ["text"],
};

async function tablesOf(bytes: Uint8Array<ArrayBuffer>): Promise<unknown> {
  const recording = await TorchRecording.read(bytes);
  const tables: Record<string, Record<string, unknown>> = {};
  for (const [name, columns] of Object.entries(NUMBERS)) {
    const table = await recording.tableIfAny(name);
    const texts = TEXTS[name] ?? [];
    tables[name] = Object.fromEntries([
      ...columns.map((column) => [column, [...table.numbers(column)]]),
      ...texts.map((column) => [column, table.texts(column)]),
    ]);
  }
  const stacks = await recording.tableIfAny("stacks");
  tables["stacks"] = { ...tables["stacks"], frames: stacks.lists("frames") };
  const { initialEvents, durationNs, manifest } = recording;
  const created = Math.floor(Date.parse(String(manifest["created"])) / 1000) || 0;
  return { initialEvents, durationNs, created, notes: manifest["notes"], tables };
}

function plain(value: PickleValue, around: readonly PickleItems[] = []): unknown {
  if (value instanceof PickleItems) {
    // A damaged pickle may have a list in itself.
    return around.includes(value)
      ? { around: true }
      : { [value.kind]: value.items.map((item) => plain(item, [...around, value])) };
  }
  if (value instanceof PickleFloat) {
    return { float: String(value.value) };
  }
  if (typeof value === "number" || typeof value === "bigint") {
    return { integer: String(value) };
  }
  return value === OTHER ? { other: true } : (value ?? null);
}

for await (const line of createInterface({ input: process.stdin })) {
  const [path = "", isValue] = line.startsWith("value ") ? [line.slice(6), true] : [line, false];
  const bytes = new Uint8Array(await readFile(path));
  const answer = isValue
    ? readPickle(bytes).then((value) => ({ value: plain(value) }))
    : tablesOf(bytes);
  const said = await answer.catch((error: unknown) => ({ error: String(error) }));
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
