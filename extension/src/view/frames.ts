import { themeOf, type Theme } from "./theme.ts";

/** A frame ends early rather than take longer, but drawings that are this light never wait. */
const LONGEST_MS = 16;
const LIGHT_MS = 1;

/** Runs each requested drawing once, before the next frames that have the time for it. */
export class Frames {
  readonly #waiting = new Set<() => void>();
  readonly #all = new Set<() => void>();
  /** How long each drawing took last. */
  readonly #tookMs = new WeakMap<() => void, number>();
  #handle: number | undefined;
  #theme: Theme | undefined;

  /** Remembers a drawing for `redrawAll` until the returned function is called. */
  add(draw: () => void): () => void {
    this.#all.add(draw);
    return () => {
      this.#all.delete(draw);
      this.#waiting.delete(draw);
    };
  }

  /** Draws everything now, as when the colours have changed. */
  redrawAll(): void {
    this.#theme = undefined;
    this.#all.forEach((draw) => draw());
  }

  /** The colours where a drawing stands, which are the same for all that are drawn together. */
  themeAt(host: HTMLElement): Theme {
    return (this.#theme ??= themeOf(host));
  }

  request(draw: () => void): void {
    this.#waiting.add(draw);
    this.#handle ??= requestAnimationFrame(() => this.#draw(LONGEST_MS));
  }

  /** Runs what is requested now, so that the caller knows what it costs. */
  drawNow(): void {
    cancelAnimationFrame(this.#handle ?? 0);
    this.#draw(Infinity);
  }

  /** Draws for about so long; what has to wait is the first in the next frame. */
  #draw(longestMs: number): void {
    this.#handle = this.#theme = undefined;
    const nowMs = (): number => performance.now();
    const begin = nowMs();
    for (const draw of [...this.#waiting]) {
      const spentMs = nowMs() - begin;
      const ownMs = this.#tookMs.get(draw) ?? 0;
      if (Math.min(spentMs, ownMs) > LIGHT_MS && spentMs + ownMs > longestMs) {
        this.request(draw);
      } else {
        this.#waiting.delete(draw);
        draw();
        this.#tookMs.set(draw, nowMs() - begin - spentMs);
      }
    }
  }
}
