import assert from "node:assert/strict";
import { test } from "node:test";

import { callTree, visibleCalls, type Call } from "./icicle.ts";
import { tableOf } from "../../testing/table_of.ts";
import { GrowingRecording } from "./growing_recording.ts";
import { stackSums } from "./stack_sums.ts";
import { Stacks, type Frame } from "./stacks.ts";

function frame(name: string, filename = "train.py"): Frame {
  return {
    name,
    filename,
    line: 1,
    source: "",
    assigned: "",
    context: "",
    contextLine: 0,
    isInstalled: filename.includes("packages"),
  };
}

const STACKS = new Map<number, readonly Frame[]>([
  [1, [frame("zeros", "/lib/site-packages/cupy/a.py"), frame("forward"), frame("main")]],
  [2, [frame("backward"), frame("main")]],
  [3, [frame("forward"), frame("main")]],
]);

const fromOutermost = (stack: number): readonly Frame[] => (STACKS.get(stack) ?? []).toReversed();

function outline(call: Call): string {
  const inner = call.children.map(outline).join(" ");
  return `${call.frame?.name ?? "-"}@${call.from}+${call.amount}${inner === "" ? "" : `(${inner})`}`;
}

test("stacks are merged from the innermost call on, with those who called it below", () => {
  const amounts = new Map([
    [1, 30],
    [2, 100],
    [3, 20],
    [0, 5],
  ]);

  assert.equal(
    outline(callTree(amounts, (stack) => STACKS.get(stack) ?? [])),
    "-@0+155(backward@0+100(main@0+100) zeros@100+30(forward@100+30(main@100+30)) " +
      "forward@130+20(main@130+20) -@150+5)",
  );
});

test("stacks are merged from the outermost call on, the largest first", () => {
  const root = callTree(
    new Map([
      [1, 30],
      [2, 100],
      [3, 20],
      [0, 5],
      [9, 0],
    ]),
    fromOutermost,
  );

  assert.equal(
    outline(root),
    "-@0+155(main@0+150(backward@0+100 forward@100+50(zeros@100+30)) -@150+5)",
  );
});

test("calls below a size are left out with what they called", () => {
  const root = callTree(
    new Map([
      [1, 30],
      [2, 100],
    ]),
    fromOutermost,
  );

  assert.deepEqual(
    visibleCalls(root, 31).map((call) => call.frame?.name ?? ""),
    ["", "main", "backward"],
  );
  assert.equal(
    visibleCalls(root, 0).find((call) => call.frame?.name === "zeros")?.frame?.isInstalled,
    true,
  );
});

test("modules are merged by their paths, and what has none is one of its own", () => {
  const stacks = new Stacks();
  const module = ["layer.0.conv", "layer.1", "layer.0", "", "head"];
  stacks.append(
    tableOf("stacks", {
      id: [1, 2, 3, 4, 5],
      frames: [[], [], [], [], []],
      module,
      phase: module.map(() => "forward"),
      forward_frame: module.map(() => 0),
    }),
  );
  const amounts = new Map([1, 2, 3, 4, 5].map((stack) => [stack, 10 * stack]));

  assert.equal(
    outline(callTree(amounts, (stack) => stacks.modulePathOf(stack))),
    "-@0+150(layer@0+60(0@0+40(conv@0+10) 1@40+20) head@60+50 no module, or unknown@110+40)",
  );
});

test("activations are counted at the peak only", () => {
  const recording = new GrowingRecording();
  recording.append(
    tableOf("memory_events", {
      time: [1, 2, 3, 4],
      action: ["alloc", "alloc", "free_completed", "alloc"],
      address: [100, 200, 100, 100],
      size: [50, 7, 50, 5],
      stack: [1, 1, 1, 1],
    }),
  );
  const category = ["activation", "temporary", "activation"];
  recording.append(tableOf("categories", { device: [0, 0, 0], event: [0, 1, 3], category }));

  const [found] = stackSums(recording.contentsOf(0), undefined);

  assert.deepEqual([found?.sums.liveBytes, found?.sums.activationBytes], [57, 50]);
});
