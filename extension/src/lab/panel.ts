import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin,
} from "@jupyterlab/application";
import type { ServerConnection } from "@jupyterlab/services";
import { ITranslator, nullTranslator, type TranslationBundle } from "@jupyterlab/translation";
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";

import { Actions } from "./actions.ts";
import { gpuIcon } from "./icon.ts";
import type { KernelLinks } from "./kernel_links.ts";
import { IKernelLinks } from "./kernels.ts";
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
    const { serverSettings } = app.serviceManager;
    const side = new SidePanel(links, new Actions(app, settings), words, serverSettings);
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
  readonly #links: KernelLinks;
  readonly #actions: Actions;
  readonly #words: TranslationBundle;
  readonly #server: ServerConnection.ISettings;
  #view: Promise<PanelView> | undefined;

  constructor(
    links: KernelLinks,
    actions: Actions,
    words: TranslationBundle,
    server: ServerConnection.ISettings,
  ) {
    super();
    this.#server = server;
    this.#links = links;
    this.#actions = actions;
    this.#words = words;
    this.id = "gpuviz-panel";
    this.addClass("gpuviz-panel");
    this.title.icon = gpuIcon;
    this.title.caption = words.__("GPU memory and streams");
    this.node.setAttribute("role", "region");
    this.node.setAttribute("aria-label", this.title.caption);
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
    this.#view ??= import("./panel_view.ts").then(
      ({ PanelView }) =>
        new PanelView(this.node, this.#links, this.#actions, this.#words, this.#server),
    );
    (await this.#view).show(isShown);
  }
}
