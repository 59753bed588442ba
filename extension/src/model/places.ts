import type { Frame, Stacks } from "./stacks.ts";
import type { Work } from "./work.ts";

/** A line of the program. */
export interface Place {
  /** `function (file:line)` of the user's innermost line. */
  readonly site: string;
  /** The line's text, empty where unknown. */
  readonly source: string;
  /** The id of a call stack that leads there, 0 for none. */
  readonly stack: number;
}

export const NO_STACK = "(no call stack)";
export const NO_CALL = -1;

/** Where the program made calls and allocations: the same as gpuviz/analysis/launches.py. */
export class Places {
  readonly #work: Work;
  readonly #stacks: Stacks;
  readonly #frames = new Map<number, Frame | undefined>();
  readonly #sites = new Map<string, number>();
  readonly #siteOf = new Map<number, number>();

  constructor(work: Work, stacks: Stacks) {
    this.#work = work;
    this.#stacks = stacks;
  }

  /** The row of `ApiCalls` with a correlation id, the first of several; NO_CALL for none. */
  callOf(correlation: number): number {
    return this.#work.apiCalls.byCorrelation.all(correlation)[0] ?? NO_CALL;
  }

  /** The call stack of a row of `ApiCalls`, 0 for none. */
  stackOf(call: number): number {
    return call === NO_CALL ? 0 : (this.#work.apiCalls.stack[call] ?? 0);
  }

  of(stack: number): Place {
    const frame = this.#userFrame(stack);
    return { site: siteText(frame), source: frame?.source ?? "", stack };
  }

  /** A number for the line of a call stack, the same for the same line. */
  lineOf(stack: number): number {
    const known = this.#siteOf.get(stack);
    if (known !== undefined) {
      return known;
    }
    const site = siteText(this.#userFrame(stack));
    const number = this.#sites.get(site) ?? this.#sites.size;
    this.#sites.set(site, number);
    this.#siteOf.set(stack, number);
    return number;
  }

  #userFrame(stack: number): Frame | undefined {
    if (!this.#frames.has(stack)) {
      this.#frames.set(stack, this.#stacks.userFrameOf(stack));
    }
    return this.#frames.get(stack);
  }
}

/** A frame as `function (file:line)`. */
export function siteText(frame: Frame | undefined): string {
  return frame === undefined ? NO_STACK : `${frame.name} (${frame.filename}:${frame.line})`;
}
