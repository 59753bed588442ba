import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ICommandPalette, Notification } from "@jupyterlab/apputils";
import { IDocumentManager } from "@jupyterlab/docmanager";
import { FileDialog } from "@jupyterlab/filebrowser";
import { ILauncher } from "@jupyterlab/launcher";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { ITranslator, nullTranslator, type TranslationBundle } from "@jupyterlab/translation";
import type { ReadonlyPartialJSONObject } from "@lumino/coreutils";

import { Actions } from "./actions.ts";
import { DashboardTabs } from "./dashboard_tab.ts";
import { gpuIcon } from "./icon.ts";
import type { KernelLinks, LinkedKernel } from "./kernel_links.ts";
import { IKernelLinks } from "./kernels.ts";
import { profileCell } from "./profile_cell.ts";
import { ISettings, type Settings } from "./settings.ts";

const CATEGORY = "GPU";

/** All that gpuviz does in JupyterLab, as commands in the palette, the menus and the toolbar. */
export const commands: JupyterFrontEndPlugin<void> = {
  id: "gpuviz:commands",
  description: "Starts, stops and shows recordings of GPU memory by commands.",
  autoStart: true,
  requires: [IKernelLinks, ISettings],
  optional: [INotebookTracker, ICommandPalette, ILauncher, IDocumentManager, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    links: KernelLinks,
    settings: Settings,
    notebooks: INotebookTracker | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    documents: IDocumentManager | null,
    translator: ITranslator | null,
  ): void => {
    const words = (translator ?? nullTranslator).load("gpuviz");
    const added = new Set<string>(["gpuviz:open-panel"]);
    const add: AddCommand = (id, label, execute, more = {}) => {
      app.commands.addCommand(id, { label, execute, ...more });
      added.add(id);
    };
    if (notebooks !== null) {
      addNotebookCommands(add, app, new Actions(app, settings), links, notebooks, words);
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
    for (const command of added) {
      palette?.addItem({ command, category: words.__(CATEGORY) });
    }
  },
};

type AddCommand = (
  id: string,
  label: string,
  execute: (args: ReadonlyPartialJSONObject) => unknown,
  more?: {
    readonly isEnabled?: () => boolean;
    readonly isVisible?: () => boolean;
    icon?: typeof gpuIcon;
    caption?: string;
  },
) => void;

function addNotebookCommands(
  add: AddCommand,
  app: JupyterFrontEnd,
  actions: Actions,
  links: KernelLinks,
  notebooks: INotebookTracker,
  words: TranslationBundle,
): void {
  const tabs = new DashboardTabs(app, words);
  const isEnabled = (): boolean => notebooks.currentWidget?.sessionContext.session?.kernel != null;
  const notify = (): void => {
    app.commands.notifyCommandChanged();
  };
  notebooks.currentChanged.connect((_, panel) => {
    panel?.sessionContext.kernelChanged.connect(notify);
    notify();
  });
  /** Does something with the kernel of the current notebook, in which gpuviz is loaded first. */
  const withKernel = (
    act: (kernel: LinkedKernel, panel: NotebookPanel) => Promise<string | void>,
  ) => {
    return async ({ path }: ReadonlyPartialJSONObject): Promise<void> => {
      const named = notebooks.find(({ context }) => context.path === path);
      const panel = named ?? notebooks.currentWidget;
      const kernel = links.kernel(panel?.sessionContext.session?.kernel?.id);
      if (panel === null || kernel === undefined) {
        return;
      }
      try {
        await kernel.link.load();
        const said = await act(kernel, panel);
        if (said) {
          Notification.info(said, { autoClose: 4000 });
        }
      } catch (error) {
        Notification.error(`gpuviz: ${(error as Error).message}`);
      }
    };
  };
  const enabled = { isEnabled };
  add(
    "gpuviz:load",
    words.__("Load gpuviz in This Kernel"),
    withKernel(() => Promise.resolve("")),
    enabled,
  );
  add("gpuviz:start", words.__("Start Recording the GPU"), withKernel(actions.start), enabled);
  add("gpuviz:stop", words.__("Stop Recording the GPU"), withKernel(actions.stop), enabled);
  add("gpuviz:save-report", words.__("Save GPU Report"), withKernel(actions.report), enabled);
  add(
    "gpuviz:dashboard",
    words.__("GPU Dashboard"),
    withKernel((_, panel) => tabs.show(panel)),
    {
      ...enabled,
      icon: gpuIcon,
      caption: words.__("Show GPU memory and streams beside the notebook"),
    },
  );
  add(
    "gpuviz:profile-cell",
    words.__("Profile This Cell on the GPU"),
    withKernel((_, { content, sessionContext }) => profileCell(content, sessionContext)),
    enabled,
  );
}

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
      documents.openOrReveal(path, "GPU timeline");
    }
  };
  add("gpuviz:open-recording", words.__("Open GPU Recording…"), open, { icon: gpuIcon });
}
