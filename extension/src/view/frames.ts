import { themeOf, type Theme } from "./theme.ts";

/** Runs each requested drawing once before the next frame is shown. */
export class Frames {
  readonly #waiting = new Set<() => void>();
  readonly #all = new Set<() => void>();
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
    this.#handle ??= requestAnimationFrame(() => this.drawNow());
  }

  /** Runs what is requested now, so that the caller knows what it costs. */
  drawNow(): void {
    if (this.#handle !== undefined) {
      cancelAnimationFrame(this.#handle);
      this.#handle = undefined;
    }
    this.#theme = undefined;
    const draws = [...this.#waiting];
    this.#waiting.clear();
    draws.forEach((draw) => draw());
  }
}
