import type { Frame, Stacks } from "./stacks.ts";

/** A call and what was allocated in it and below it, as a part of all that was. */
export interface Call {
  /** Undefined for the root, and for what has no call stack. */
  readonly frame: Frame | undefined;
  readonly depth: number;
  /** Where it begins among all bytes. */
  from: number;
  bytes: number;
  readonly parent: Call | undefined;
  readonly children: readonly Call[];
}

interface GrowingCall extends Call {
  readonly children: GrowingCall[];
  readonly byFrame: Map<string, GrowingCall>;
}

const DEEPEST = 64;

/** Merges call stacks from their outermost frames on, the largest call first on each level. */
export function callTree(bytesOf: ReadonlyMap<number, number>, stacks: Stacks): Call {
  const root = growing(undefined, undefined);
  for (const [stack, bytes] of bytesOf) {
    if (bytes <= 0) {
      continue;
    }
    root.bytes += bytes;
    let call = root;
    const frames = stacks.framesOf(stack);
    const outermostFirst: (Frame | undefined)[] = frames.slice(0, DEEPEST).reverse();
    for (const frame of outermostFirst.length === 0 ? [undefined] : outermostFirst) {
      call = childOf(call, frame);
      call.bytes += bytes;
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
  return { frame, depth, from: 0, bytes: 0, parent, children: [], byFrame: new Map() };
}

function place(call: GrowingCall): void {
  call.children.sort((left, right) => right.bytes - left.bytes);
  let from = call.from;
  for (const child of call.children) {
    child.from = from;
    from += child.bytes;
    place(child);
  }
}

/** The calls that are at least `leastBytes`, and how deep they go. */
export function visibleCalls(root: Call, leastBytes: number): Call[] {
  const visible: Call[] = [];
  const visit = (call: Call): void => {
    if (call.bytes >= leastBytes && call.bytes > 0) {
      visible.push(call);
      call.children.forEach(visit);
    }
  };
  visit(root);
  return visible;
}
