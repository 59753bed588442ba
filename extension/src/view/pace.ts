import { Scope } from "../base/scope.ts";

/** How often an update runs on a page that is fast enough, and how much of its time it may take. */
export interface Limits {
  readonly shortestMs: number;
  /** Between two updates there is at least this many times what one takes. */
  readonly rest: number;
}

/** Runs an update before the next frame, not while it cannot be seen, and not all the time. */
export class Pace {
  readonly scope = new Scope();
  readonly #update: () => void;
  readonly #limits: Limits;
  #isSeen = true;
  #isWanted = false;
  #waiting: number | undefined;
  #restUntilMs = 0;
  #tookMs = 0;

  constructor(seen: HTMLElement, limits: Limits, update: () => void) {
    this.#limits = limits;
    this.#update = update;
    const observer = new IntersectionObserver((entries) => {
      this.#isSeen = entries.some((entry) => entry.isIntersecting);
      this.#schedule();
    });
    observer.observe(seen);
    this.scope.defer(() => {
      observer.disconnect();
      clearTimeout(this.#waiting);
      this.#isWanted = false;
    });
  }

  request(): void {
    this.#isWanted = true;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isWanted && this.#isSeen && this.#waiting === undefined) {
      const restMs = Math.max(this.#restUntilMs - performance.now(), 0);
      this.#waiting = window.setTimeout(() => {
        requestAnimationFrame(() => {
          this.#waiting = undefined;
          this.#run();
        });
      }, restMs);
    }
  }

  #run(): void {
    if (!this.#isWanted || !this.#isSeen) {
      return;
    }
    this.#isWanted = false;
    const begin = performance.now();
    this.#update();
    const tookMs = performance.now() - begin;
    const { rest, shortestMs } = this.#limits;
    // One that took long by chance, as the first one does, is no reason to wait.
    const usualMs = Math.min(tookMs, this.#tookMs);
    this.#tookMs = tookMs;
    this.#restUntilMs = begin + Math.max(tookMs + rest * usualMs, shortestMs);
  }
}
