import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin,
} from "@jupyterlab/application";
import { ICommandPalette } from "@jupyterlab/apputils";
import { IDocumentManager } from "@jupyterlab/docmanager";
import { FileDialog } from "@jupyterlab/filebrowser";
import { ILauncher } from "@jupyterlab/launcher";
import { INotebookTracker } from "@jupyterlab/notebook";
import { ITranslator, nullTranslator, type TranslationBundle } from "@jupyterlab/translation";

import { actionsIn } from "./actions.ts";
import { dashboardTabs } from "./dashboard_tab.ts";
import { gpuIcon } from "./icon.ts";
import { IKernelLinks, type KernelLinks } from "./kernel_links.ts";
import { type AddCommand, addNotebookCommands } from "./notebook_commands.ts";
import { FACTORY } from "./recordings.ts";
import { ISettings, type Settings } from "./settings.ts";

/** gpuviz's commands in the palette, the menus and the toolbar. */
export const commands: JupyterFrontEndPlugin<void> = {
  id: "gpuviz:commands",
  description: "Commands that start, stop and show GPU recordings.",
  autoStart: true,
  requires: [IKernelLinks, ISettings],
  optional: [
    INotebookTracker,
    ICommandPalette,
    ILauncher,
    IDocumentManager,
    ILayoutRestorer,
    ITranslator,
  ],
  activate: (
    app: JupyterFrontEnd,
    links: KernelLinks,
    settings: Settings,
    notebooks: INotebookTracker | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    documents: IDocumentManager | null,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
  ): void => {
    const words = (translator ?? nullTranslator).load("gpuviz");
    const category = words.__("GPU");
    const add: AddCommand = (command, label, execute, more = {}) => {
      app.commands.addCommand(command, { label, execute, ...more });
      palette?.addItem({ command, category });
    };
    palette?.addItem({ command: "gpuviz:open-panel", category });
    if (notebooks !== null) {
      const showDashboard = dashboardTabs(app, links, notebooks, restorer, words);
      const actions = actionsIn(app, settings);
      addNotebookCommands(add, app, actions, links, notebooks, showDashboard, words);
    }
    if (documents !== null) {
      addOpenRecording(add, documents, words);
      launcher?.add({ command: "gpuviz:open-recording", category: words.__("Other"), rank: 10 });
    }
    add(
      "gpuviz:open-settings",
      words.__("GPU Settings…"),
      () => app.commands.execute("settingeditor:open", { query: "gpuviz" }),
      { isVisible: () => app.commands.hasCommand("settingeditor:open") },
    );
  },
};

function addOpenRecording(
  add: AddCommand,
  documents: IDocumentManager,
  words: TranslationBundle,
): void {
  const open = async (): Promise<void> => {
    const chosen = await FileDialog.getOpenFiles({
      manager: documents,
      title: words.__("Open a GPU recording"),
      filter: ({ type, path }) =>
        type === "directory" || /\.(gpuviz|html|pickle|pkl)$/.test(path) ? {} : null,
    });
    for (const { path } of chosen.value ?? []) {
      documents.openOrReveal(path, FACTORY);
    }
  };
  add("gpuviz:open-recording", words.__("Open GPU Recording…"), open, { icon: gpuIcon });
}
