import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { INotebookTracker } from "@jupyterlab/notebook";
import { IStatusBar } from "@jupyterlab/statusbar";
import { ITranslator, nullTranslator, type TranslationBundle } from "@jupyterlab/translation";
import { Signal } from "@lumino/signaling";
import { Widget } from "@lumino/widgets";

import { formatBytes } from "../base/format.ts";
import { element } from "../view/dom.ts";
import type { KernelLink } from "./kernel_link.ts";
import { IKernelLinks, type KernelLinks } from "./kernel_links.ts";
// Not with the panel's style sheet, which is loaded once that is opened.
import "./status.css";

/** The status bar's `1.2 / 3.4 GiB` for the kernel of the current notebook. */
export const status: JupyterFrontEndPlugin<void> = {
  id: "gpuviz:status",
  description: "Shows the GPU memory of the notebook's kernel in the status bar.",
  autoStart: true,
  requires: [IKernelLinks],
  optional: [INotebookTracker, IStatusBar, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    links: KernelLinks,
    notebooks: INotebookTracker | null,
    bar: IStatusBar | null,
    translator: ITranslator | null,
  ): void => {
    if (notebooks === null || bar === null) {
      return;
    }
    const words = (translator ?? nullTranslator).load("gpuviz");
    const item = new MemoryItem(words, () => void app.commands.execute("gpuviz:open-panel"));
    const follow = (): void =>
      item.follow(links.of(notebooks.currentWidget?.sessionContext.session?.kernel?.id));
    notebooks.currentChanged.connect((_, panel) => {
      panel?.sessionContext.kernelChanged.connect(follow);
      follow();
    });
    links.changed.connect(follow);
    document.addEventListener("visibilitychange", () => item.look());
    bar.registerStatusItem("gpuviz:memory", {
      item,
      align: "left",
      rank: 3,
      isActive: () => item.hasText,
      activeStateChanged: item.activity,
    });
  },
};

/** A button with a number, hidden if there is none. */
class MemoryItem extends Widget {
  readonly activity = new Signal<this, void>(this);
  readonly #words: TranslationBundle;
  readonly #button = element("button", "gpuviz-status jp-StatusBar-TextItem");
  #link: KernelLink | undefined;

  constructor(words: TranslationBundle, open: () => void) {
    super();
    this.#words = words;
    this.#button.type = "button";
    this.#button.addEventListener("click", open);
    this.node.append(this.#button);
  }

  get hasText(): boolean {
    return this.#button.textContent !== "";
  }

  /** Shows the memory of a kernel. */
  follow(link: KernelLink | undefined): void {
    if (link === this.#link) {
      return;
    }
    this.#link?.changed.disconnect(this.#draw, this);
    this.#link?.look(this, false);
    this.#link = link;
    link?.changed.connect(this.#draw, this);
    this.look();
    this.#draw();
  }

  /** Queries the kernel only while the page is visible. */
  look(): void {
    this.#link?.look(this, !document.hidden);
  }

  #draw(): void {
    const devices = this.#link?.status === "present" ? (this.#link.state?.devices ?? []) : [];
    const had = this.#button.textContent;
    const sum = (name: "allocated" | "peak"): number => {
      return devices.reduce((total, device) => total + device[name], 0);
    };
    const text = `GPU ${formatBytes(sum("allocated"))} / ${formatBytes(sum("peak"))}`;
    this.#button.textContent = devices.length === 0 ? "" : text;
    this.#button.title = this.#words.__("GPU memory of this kernel: allocated now / at the peak");
    if ((had === "") !== (devices.length === 0)) {
      this.activity.emit();
    }
  }
}
