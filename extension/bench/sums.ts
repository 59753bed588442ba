// Prints the time to sum up a selected span of a large recording, by table: node bench/sums.ts
import { seeded } from "../testing/seeded.ts";
import { tableOf } from "../testing/table_of.ts";
import { GrowingRecording } from "../src/model/growing_recording.ts";
import { copyRows, kernelRows, synchronizationRows } from "../src/model/gpu_rows.ts";
import { lineRows } from "../src/model/line_rows.ts";
import { measure } from "../src/model/measurement.ts";

const ROWS = 1_000_000;
const STREAMS = 4;
const STACKS = 60;
const KERNELS = 40;
const STEP_NS = 4000;
const SLOTS = 4096;
const SHARES = [1, 0.5, 0.1, 0.001];
const REPEATS = 7;

const random = seeded(3);
const columnOf = (valueAt: (row: number) => number): number[] =>
  Array.from({ length: ROWS }, (_, row) => valueAt(row));

const recording = new GrowingRecording();
const ids = Array.from({ length: STACKS }, (_, id) => id + 1);
const lines = { id: ids, name: ids.map(String), filename: ids.map(() => "a.py"), line: ids };
recording.append(tableOf("frames", { ...lines, source: ids.map(() => "x = f(x)") }));
recording.append(tableOf("stacks", { id: ids, frames: ids.map((id) => [id]), user_frame: ids }));
recording.append(
  tableOf("strings", { id: ids, text: ids.map((id) => `kernel_${id % KERNELS}<float>`) }),
);
const taken = new Uint8Array(SLOTS);
const slots = columnOf(() => Math.floor(random() * SLOTS));
recording.append(
  tableOf("memory_events", {
    time: columnOf((row) => row * STEP_NS),
    action: slots.map((slot) => {
      taken[slot] = 1 - (taken[slot] ?? 0);
      return taken[slot] === 1 ? "alloc" : "free_completed";
    }),
    address: slots.map((slot) => 2 ** 40 + slot * 2 ** 17),
    size: columnOf(() => 2 ** 16),
    requested_size: columnOf(() => 2 ** 16),
    stack: slots.map((slot) => 1 + (slot % STACKS)),
  }),
);
const time = columnOf((row) => row * STEP_NS + Math.floor(random() * 500));
recording.append(
  tableOf("api_calls", {
    time: time.map((each) => each - 900),
    end: time.map((each) => each - 300),
    correlation: columnOf((row) => row + 1),
    stack: columnOf((row) => 1 + (row % STACKS)),
    thread: columnOf(() => 1),
  }),
);
recording.append(
  tableOf("activities", {
    time,
    end: time.map((each) => each + 500 + Math.floor(random() * 2900)),
    kind: Array.from(time, (_, row) => (row % 10 === 0 ? "memcpy" : "kernel")),
    name: columnOf((row) => 1 + (row % KERNELS)),
    stream: columnOf((row) => 1 + (row % STREAMS)),
    correlation: columnOf((row) => row + 1),
    bytes: columnOf(() => 4096),
  }),
);
const waits = Array.from({ length: ROWS / 20 }, (_, row) => row * STEP_NS * 20);
recording.append(
  tableOf("host_waits", {
    time: waits,
    end: waits.map((each) => each + 900),
    stack: waits.map((_, row) => 1 + (row % STACKS)),
    call: waits.map(() => -1),
    kind: waits.map(() => "stream_synchronize"),
  }),
);
const contents = recording.contentsOf(0);
const { toNs } = { toNs: contents.timeline.endNs };

const SUMS = {
  measured: (from: number, to: number) =>
    measure(contents.timeline, contents.lanes.ofDevice(0), from, to),
  lines: (fromNs: number, to: number) => lineRows(contents, { fromNs, toNs: to }),
  kernels: (fromNs: number, to: number) => kernelRows(contents, { fromNs, toNs: to }),
  copies: (fromNs: number, to: number) => copyRows(contents, { fromNs, toNs: to }),
  waits: (fromNs: number, to: number) => synchronizationRows(contents, { fromNs, toNs: to }),
};
console.log(`${ROWS} events and ${ROWS} activities; ms, median and worst of ${REPEATS}`);
for (const [name, sum] of Object.entries(SUMS)) {
  const cells = SHARES.map((share) => {
    const fromNs = ((1 - share) / 2) * toNs;
    const times = Array.from({ length: REPEATS }, () => {
      const begin = performance.now();
      sum(fromNs, fromNs + share * toNs);
      return performance.now() - begin;
    }).sort((left, right) => left - right);
    const [median = 0, worst = 0] = [times[REPEATS >> 1], times.at(-1)];
    return `${(share * 100).toString().padStart(5)} %: ${median.toFixed(1)} / ${worst.toFixed(1)}`;
  });
  console.log(name.padEnd(9), cells.join("   "));
}
