import { Scope } from "../base/scope.ts";

/** Between two updates there is at least this many times what one takes. */
const REST = 6;
/** From one update to the next, a page that is fast enough draws ten times a second. */
const SHORTEST_MS = 95;

/** Runs an update before the next frame, not while it cannot be seen, and not all the time. */
export class Pace {
  readonly scope = new Scope();
  readonly #update: () => void;
  #isSeen = true;
  #isWanted = false;
  #waiting: number | undefined;
  #restUntilMs = 0;
  #tookMs = 0;

  constructor(seen: HTMLElement, update: () => void) {
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
    // One that took long by chance, as the first one does, is no reason to wait.
    const usualMs = Math.min(tookMs, this.#tookMs);
    this.#tookMs = tookMs;
    this.#restUntilMs = begin + Math.max(tookMs + REST * usualMs, SHORTEST_MS);
  }
}
