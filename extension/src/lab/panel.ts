import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin,
} from "@jupyterlab/application";
import { ITranslator, nullTranslator } from "@jupyterlab/translation";
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";

import { actionsIn } from "./actions.ts";
import { gpuIcon } from "./icon.ts";
import { IKernelLinks, type KernelLinks } from "./kernel_links.ts";
import type { PanelView } from "./panel_view.ts";
import { ISettings, type Settings } from "./settings.ts";

/** The side panel "GPU": the recording of each running kernel, and the devices' memory. */
export const panel: JupyterFrontEndPlugin<void> = {
  id: "gpuviz:panel",
  description: "A side panel with GPU memory and busy share of each running kernel.",
  autoStart: true,
  requires: [IKernelLinks, ISettings],
  optional: [ILayoutRestorer, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    links: KernelLinks,
    settings: Settings,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
  ): void => {
    const words = (translator ?? nullTranslator).load("gpuviz");
    const actions = actionsIn(app, settings);
    const { serverSettings } = app.serviceManager;
    const side = new SidePanel(words.__("GPU memory and streams"), async (parent) => {
      const { PanelView } = await import("./panel_view.ts");
      return new PanelView(parent, links, actions, words, serverSettings);
    });
    app.shell.add(side, "left", { rank: 450, type: "GPU" });
    restorer?.add(side, side.id);
    app.commands.addCommand("gpuviz:open-panel", {
      label: words.__("Show GPU Panel"),
      icon: gpuIcon,
      execute: () => app.shell.activateById(side.id),
    });
  },
};

/** A side panel that loads its contents when it is first shown. */
class SidePanel extends Widget {
  readonly #load: (parent: HTMLElement) => Promise<PanelView>;
  #view: Promise<PanelView> | undefined;

  constructor(caption: string, load: (parent: HTMLElement) => Promise<PanelView>) {
    super();
    this.#load = load;
    this.id = "gpuviz-panel";
    this.addClass("gpuviz-panel");
    this.title.icon = gpuIcon;
    this.title.caption = caption;
    this.node.setAttribute("role", "region");
    this.node.setAttribute("aria-label", caption);
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    void this.#show(true);
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    void this.#show(this.isVisible);
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    void this.#show(false);
  }

  async #show(isShown: boolean): Promise<void> {
    if (!isShown && this.#view === undefined) {
      return;
    }
    this.#view ??= this.#load(this.node);
    (await this.#view).show(isShown);
  }
}
