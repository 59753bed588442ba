import type { Frame } from "./stacks.ts";

/**
 * A call, or a module of a neural network, and what happened in it and below it, in bytes or ns, as
 * a part of all that did.
 */
export interface Call {
  /** Undefined for the root, and for what has no call stack. */
  readonly frame: Frame | undefined;
  readonly depth: number;
  /** Where it begins among all. */
  from: number;
  amount: number;
  readonly parent: Call | undefined;
  readonly children: readonly Call[];
}

interface GrowingCall extends Call {
  readonly children: GrowingCall[];
  readonly byFrame: Map<string, GrowingCall>;
}

/** Merges the paths of call stacks from their first frames on, the largest first on each level. */
export function callTree(
  amounts: ReadonlyMap<number, number>,
  pathOf: (stack: number) => readonly Frame[],
): Call {
  const root = growing(undefined, undefined);
  for (const [stack, amount] of amounts) {
    if (amount <= 0) {
      continue;
    }
    root.amount += amount;
    let call = root;
    const path = pathOf(stack);
    for (const frame of path.length === 0 ? [undefined] : path) {
      call = childOf(call, frame);
      call.amount += amount;
    }
  }
  place(root);
  return root;
}

function childOf(call: GrowingCall, frame: Frame | undefined): GrowingCall {
  const key = frame === undefined ? "" : `${frame.filename}\n${frame.line}\n${frame.name}`;
  const known = call.byFrame.get(key);
  if (known !== undefined) {
    return known;
  }
  const child = growing(call, frame);
  call.byFrame.set(key, child);
  call.children.push(child);
  return child;
}

function growing(parent: Call | undefined, frame: Frame | undefined): GrowingCall {
  const depth = parent === undefined ? 0 : parent.depth + 1;
  return { frame, depth, from: 0, amount: 0, parent, children: [], byFrame: new Map() };
}

function place(call: GrowingCall): void {
  call.children.sort((left, right) => right.amount - left.amount);
  let from = call.from;
  for (const child of call.children) {
    child.from = from;
    from += child.amount;
    place(child);
  }
}

/** The calls that have at least this, and those around them. */
export function visibleCalls(root: Call, least: number): Call[] {
  const visible: Call[] = [];
  const visit = (call: Call): void => {
    if (call.amount >= least && call.amount > 0) {
      visible.push(call);
      call.children.forEach(visit);
    }
  };
  visit(root);
  return visible;
}
