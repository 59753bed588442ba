import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin,
} from "@jupyterlab/application";
import { ICommandPalette } from "@jupyterlab/apputils";
import { IDocumentManager } from "@jupyterlab/docmanager";
import { FileDialog, IFileBrowserFactory } from "@jupyterlab/filebrowser";
import { ILauncher } from "@jupyterlab/launcher";
import { INotebookTracker } from "@jupyterlab/notebook";
import { ITranslator, nullTranslator, type TranslationBundle } from "@jupyterlab/translation";

import { actionsIn } from "./actions.ts";
import { showComparison } from "./comparison.ts";
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
    IFileBrowserFactory,
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
    browsers: IFileBrowserFactory | null,
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
      if (browsers !== null) {
        addCompareRecordings(app, documents, browsers, words);
      }
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
    for (const path of await chosenFiles(documents, words.__("Open a GPU recording"))) {
      documents.openOrReveal(path, FACTORY);
    }
  };
  add("gpuviz:open-recording", words.__("Open GPU Recording…"), open, { icon: gpuIcon });
}

/** Compares the two recordings that are selected in the file browser, or one with another. */
function addCompareRecordings(
  app: JupyterFrontEnd,
  documents: IDocumentManager,
  browsers: IFileBrowserFactory,
  words: TranslationBundle,
): void {
  const compare = async (): Promise<void> => {
    const items = [...(browsers.tracker.currentWidget?.selectedItems() ?? [])];
    const selected = items
      .toSorted((left, right) => left.last_modified.localeCompare(right.last_modified))
      .map(({ path }) => path);
    const others =
      selected.length === 1 ? await chosenFiles(documents, words.__("Compare with")) : [];
    const [before, after] = [...selected, ...others];
    if (before !== undefined && after !== undefined) {
      showComparison(app, before, after, words);
    }
  };
  app.commands.addCommand("gpuviz:compare-recordings", {
    label: words.__("Compare With…"),
    caption: words.__("Show two GPU recordings in one workbench; the older one is the first"),
    icon: gpuIcon,
    execute: compare,
  });
}

async function chosenFiles(documents: IDocumentManager, title: string): Promise<string[]> {
  const chosen = await FileDialog.getOpenFiles({
    manager: documents,
    title,
    filter: ({ type, path }) =>
      type === "directory" || /\.(gpuviz|html|pickle|pkl)$/.test(path) ? {} : null,
  });
  return (chosen.value ?? []).map(({ path }) => path);
}
