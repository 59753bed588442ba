import "./style.css";

import type { ServerConnection } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";

import { element } from "../view/dom.ts";
import type { Actions } from "./actions.ts";
import { type Source, unionOf } from "./device_union.ts";
import { KernelCard } from "./kernel_card.ts";
import type { KernelLinks, LinkedKernel } from "./kernel_links.ts";
import type { KernelState } from "./panel_messages.ts";
import { ServerDevices } from "./server_devices.ts";
import { totalsList } from "./totals_list.ts";

/** Age from which the server's data is preferred: a kernel that holds the GIL sends nothing. */
const STALE_MS = 5000;

/** The panel's contents: a card for each running kernel, then the devices. */
export class PanelView {
  readonly #links: KernelLinks;
  readonly #actions: Actions;
  readonly #words: TranslationBundle;
  readonly #server: ServerDevices;
  readonly #kernels = document.createElement("section");
  readonly #devices = document.createElement("section");
  readonly #cards = new Map<string, KernelCard>();
  readonly #toldMs = new WeakMap<KernelState, number>();
  #isShown = false;

  constructor(
    parent: HTMLElement,
    links: KernelLinks,
    actions: Actions,
    words: TranslationBundle,
    server: ServerConnection.ISettings,
  ) {
    this.#links = links;
    this.#actions = actions;
    this.#words = words;
    this.#server = new ServerDevices(server, () => this.#showDevices());
    parent.append(this.#kernels, this.#devices);
    links.changed.connect(() => this.#update());
    document.addEventListener("visibilitychange", () => this.#update());
  }

  /** Sets whether the panel is visible; no kernel is queried while it is hidden. */
  show(isShown: boolean): void {
    this.#isShown = isShown;
    this.#update();
  }

  #update(): void {
    const isSeen = this.#isShown && !document.hidden;
    this.#server.look(isSeen);
    if (!isSeen && this.#cards.size === 0) {
      return;
    }
    const running = this.#links.all();
    for (const kernel of running) {
      const { link } = kernel;
      link.look(this, isSeen);
      const known = this.#cards.get(link.kernelId);
      known?.rename(kernel);
      if (known === undefined) {
        const card = new KernelCard(kernel, this.#actions, this.#words);
        this.#cards.set(link.kernelId, card);
        link.changed.connect(() => this.#showDevices());
      }
    }
    const ids = new Set(running.map(({ link }) => link.kernelId));
    for (const [id, card] of this.#cards) {
      if (!ids.has(id)) {
        this.#cards.delete(id);
        card.dispose();
      }
    }
    const cards = running.flatMap(({ link }) => this.#cards.get(link.kernelId)?.node ?? []);
    const none = [paragraph(this.#words.__("No running kernels."))];
    const title = element("h2", "", this.#words.__("Kernels"));
    this.#kernels.replaceChildren(title, ...(cards.length > 0 ? cards : none));
    this.#showDevices();
  }

  #showDevices(): void {
    const running = this.#links.all();
    const server = this.#serverTeller(running);
    const kernels = running.flatMap(({ link: { state, status }, path }) => {
      return state === undefined || status !== "present" ? [] : [this.#kernelTeller(state, path)];
    });
    const sources = [
      ...kernels.filter(({ isFresh }) => isFresh),
      ...(server === undefined ? [] : [server]),
      ...kernels.filter(({ isFresh }) => !isFresh),
    ];
    const devices = totalsList(unionOf(sources, server), server?.machine, this.#words);
    const none = paragraph(this.#words.__("No NVIDIA GPU detected."));
    const contents = devices.length > 0 || server === undefined ? devices : [none];
    const title = element("h2", "", this.#words.__("GPU memory, all processes"));
    this.#devices.replaceChildren(...(contents.length > 0 ? [title, ...contents] : []));
  }

  #kernelTeller(state: KernelState, path: string): Source & { readonly isFresh: boolean } {
    const nowMs = performance.now();
    const toldMs = this.#toldMs.get(state) ?? nowMs;
    this.#toldMs.set(state, toldMs);
    const { machine, totals } = state;
    const own = totals.flatMap(({ processes }) => processes.filter((process) => process.own));
    const owners = new Map(own.map(({ pid }) => [pid, path]));
    return { machine, devices: totals, owners, isFresh: nowMs - toldMs < STALE_MS };
  }

  #serverTeller(running: readonly LinkedKernel[]): Source | undefined {
    const { reading } = this.#server;
    if (reading === undefined) {
      return undefined;
    }
    const paths = new Map(running.map(({ link, path }) => [link.kernelId, path]));
    const owners = new Map<number, string>();
    for (const { pid, kernel } of reading.devices.flatMap(({ processes }) => processes)) {
      const path = paths.get(kernel ?? "");
      if (path !== undefined) {
        owners.set(pid, path);
      }
    }
    return { ...reading, owners };
  }
}

function paragraph(text: string): HTMLElement {
  return element("p", "gpuviz-panel__none", text);
}
