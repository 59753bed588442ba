import type { TranslationBundle } from "@jupyterlab/translation";

import { formatBytes } from "../base/format.ts";
import { element } from "../view/dom.ts";

/** The message of a tab while its recording is loading, or if that fails. */
export class Waiting {
  readonly #box = element("div", "gpuviz-waiting");
  readonly #text = document.createElement("p");
  readonly #bar = document.createElement("progress");
  readonly #words: TranslationBundle;

  constructor(parent: HTMLElement, words: TranslationBundle) {
    this.#words = words;
    this.#text.textContent = words.__("Reading the recording …");
    this.#text.setAttribute("role", "status");
    this.#box.append(this.#text, this.#bar);
    parent.prepend(this.#box);
  }

  /** Shows the number of bytes downloaded; `total` is 0 if unknown. */
  downloading(done: number, total: number): void {
    const words = this.#words;
    if (total > 0) {
      this.#bar.value = done / total;
    }
    this.#text.textContent =
      total > 0
        ? words.__("Reading the recording: %1 of %2", formatBytes(done), formatBytes(total))
        : words.__("Reading the recording: %1", formatBytes(done));
  }

  /** Shows that the server is converting the file. */
  converting(): void {
    this.#bar.removeAttribute("value");
    this.#text.textContent = this.#words.__("Converting the recording …");
  }

  /** Shows the share of the recording that is displayed below. */
  reading(share: number): void {
    this.#box.classList.add("gpuviz-waiting--reading");
    this.#bar.value = share;
    this.#text.textContent = this.#words.__("Reading the recording: %1 %", Math.floor(share * 100));
  }

  end(): void {
    this.#box.remove();
  }

  fail(path: string, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#bar.remove();
    this.#box.classList.add("gpuviz-waiting--failed");
    this.#text.setAttribute("role", "alert");
    this.#text.textContent = this.#words.__("%1 cannot be shown. %2", path, reason);
  }
}
