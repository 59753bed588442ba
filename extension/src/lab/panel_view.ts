import "./style.css";

import type { TranslationBundle } from "@jupyterlab/translation";

import type { Actions } from "./actions.ts";
import { KernelCard } from "./kernel_card.ts";
import type { KernelLink } from "./kernel_link.ts";
import type { KernelLinks } from "./kernel_links.ts";
import { totalsList } from "./totals_list.ts";

/** The panel's contents: a card for each running kernel, then the devices. */
export class PanelView {
  readonly #links: KernelLinks;
  readonly #actions: Actions;
  readonly #words: TranslationBundle;
  readonly #kernels = document.createElement("div");
  readonly #totals = document.createElement("div");
  readonly #cards = new Map<string, KernelCard>();
  readonly #watches = new Map<string, () => void>();
  #isShown = false;

  constructor(parent: HTMLElement, links: KernelLinks, actions: Actions, words: TranslationBundle) {
    this.#links = links;
    this.#actions = actions;
    this.#words = words;
    parent.append(this.#kernels, this.#totals);
    links.changed.connect(() => {
      this.#update();
    });
    document.addEventListener("visibilitychange", () => {
      this.#update();
    });
  }

  /** Says whether the panel can be seen; while it cannot, no kernel is asked anything. */
  show(isShown: boolean): void {
    this.#isShown = isShown;
    this.#update();
  }

  #update(): void {
    const isSeen = this.#isShown && !document.hidden;
    if (!isSeen && this.#cards.size === 0) {
      return;
    }
    const running = this.#links.all();
    for (const kernel of running) {
      const { link } = kernel;
      this.#watch(link, isSeen);
      const known = this.#cards.get(link.kernelId);
      known?.rename(kernel);
      if (known === undefined) {
        const card = new KernelCard(kernel, this.#actions, this.#words);
        this.#cards.set(link.kernelId, card);
        link.changed.connect(() => {
          this.#showTotals();
        });
      }
    }
    const ids = new Set(running.map(({ link }) => link.kernelId));
    for (const [id, card] of this.#cards) {
      if (!ids.has(id)) {
        this.#cards.delete(id);
        this.#watches.delete(id);
        card.dispose();
      }
    }
    const none = document.createElement("p");
    none.className = "gpuviz-panel__none";
    none.textContent = this.#words.__("No kernel runs.");
    const cards = running.flatMap(({ link }) => this.#cards.get(link.kernelId)?.node ?? []);
    this.#kernels.replaceChildren(...(cards.length > 0 ? cards : [none]));
    this.#showTotals();
  }

  #watch(link: KernelLink, isSeen: boolean): void {
    const end = this.#watches.get(link.kernelId);
    if (isSeen && end === undefined) {
      this.#watches.set(link.kernelId, link.watch());
    } else if (!isSeen && end !== undefined) {
      this.#watches.delete(link.kernelId);
      end();
    }
  }

  /** Any kernel tells the same of the devices of its machine. */
  #showTotals(): void {
    const told = this.#links.all().flatMap(({ link, path }) => {
      return (link.state?.totals ?? []).map((device) => ({ device, path }));
    });
    this.#totals.replaceChildren(...totalsList(told, this.#words));
  }
}
