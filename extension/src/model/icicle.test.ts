import assert from "node:assert/strict";
import { test } from "node:test";

import { callTree, visibleCalls, type Call } from "./icicle.ts";
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

class FixedStacks extends Stacks {
  readonly #frames: ReadonlyMap<number, readonly Frame[]>;

  constructor(frames: ReadonlyMap<number, readonly Frame[]>) {
    super();
    this.#frames = frames;
  }

  override framesOf(stack: number): readonly Frame[] {
    return this.#frames.get(stack) ?? [];
  }
}

const STACKS = new FixedStacks(
  new Map([
    [1, [frame("zeros", "/lib/site-packages/cupy/a.py"), frame("forward"), frame("main")]],
    [2, [frame("backward"), frame("main")]],
    [3, [frame("forward"), frame("main")]],
  ]),
);

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
    outline(callTree(amounts, STACKS, true)),
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
    STACKS,
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
    STACKS,
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
