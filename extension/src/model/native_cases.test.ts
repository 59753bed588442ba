import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import { busyIn } from "./busy.ts";
import { isPendingAfter } from "./blocks.ts";
import { fragmentationAfter } from "./fragmentation.ts";
import { GrowingRecording } from "./growing_recording.ts";
import { LEVEL_NAMES } from "./levels.ts";

type Columns = Readonly<Record<string, readonly (number | string)[]>>;

/** What tests/unit/recording/native_cases.py writes. */
interface Case {
  readonly initial_events: number;
  readonly memory_events: Columns;
  readonly activities: Columns;
  readonly moments: readonly {
    readonly row: number;
    readonly levels: Readonly<Record<string, number>>;
    readonly fragmentation: Readonly<Record<string, number>>;
    readonly blocks: readonly (readonly [address: number, size: number, isPending: boolean])[];
  }[];
  readonly windows: readonly (Readonly<Record<"from" | "to", number>> &
    Readonly<Record<string, number>>)[];
}

const FILE = new URL("../../testing/native_cases.json", import.meta.url);
const CASES = JSON.parse(readFileSync(FILE, "utf8")) as readonly Case[];

function recordingOf(program: Case): GrowingRecording {
  const recording = new GrowingRecording(program.initial_events);
  recording.append(tableOf("memory_events", program.memory_events));
  recording.append(tableOf("activities", program.activities));
  return recording;
}

test("levels, blocks and fragmentation at a moment are those of the native code", () => {
  for (const program of CASES) {
    const { timeline } = recordingOf(program).contentsOf(0);
    for (const { row, levels, fragmentation, blocks } of program.moments) {
      for (const name of LEVEL_NAMES) {
        assert.equal(timeline.lines[name].values[row], levels[name]);
      }
      const found = fragmentationAfter(timeline, row);
      const { pools: _pools, freeBlocks: _freeBlocks, ...numbers } = found;
      const inPython = Object.entries(numbers).map(([name, value]) => [
        name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        value,
      ]);
      assert.deepEqual(Object.fromEntries(inPython), fragmentation);
      const shown = timeline.segmentsAfter(row).flatMap((segment) => segment.blocks);
      assert.deepEqual(
        shown.map((block) => [
          timeline.blocks.address[block],
          timeline.blocks.size[block],
          isPendingAfter(timeline.blocks, block, row),
        ]),
        blocks,
      );
    }
  }
});

test("busy and overlapping times of a window are those of the native code", () => {
  for (const program of CASES) {
    const { lanes } = recordingOf(program).contentsOf(0);
    for (const { from, to, ...expected } of program.windows) {
      const { busyNs, kernelNs, copyNs, overlapNs, deviceCopyNs } = busyIn(
        lanes.ofDevice(0),
        from,
        to,
      );
      const found = { busy_ns: busyNs, kernel_ns: kernelNs, copy_ns: copyNs };
      const copies = { kernel_copy_ns: overlapNs, device_copy_ns: deviceCopyNs };
      assert.deepEqual({ ...found, ...copies }, expected);
    }
  }
});
