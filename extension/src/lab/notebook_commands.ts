import type { JupyterFrontEnd } from "@jupyterlab/application";
import { Notification } from "@jupyterlab/apputils";
import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import type { TranslationBundle } from "@jupyterlab/translation";
import type { CommandRegistry } from "@lumino/commands";

import type { Actions, Outcome } from "./actions.ts";
import { DASHBOARD_COMMAND, type ShowDashboard } from "./dashboard_tab.ts";
import { gpuIcon } from "./icon.ts";
import type { KernelLinks, LinkedKernel } from "./kernel_links.ts";
import { profileCell } from "./profile_cell.ts";

type Execute = CommandRegistry.ICommandOptions["execute"];

/** Adds a command by its id, label, action and other options. */
export type AddCommand = (
  id: string,
  label: string,
  execute: Execute,
  more?: Partial<CommandRegistry.ICommandOptions>,
) => void;

/** Adds the commands for the current notebook, or for that of the argument `path`. */
export function addNotebookCommands(
  add: AddCommand,
  app: JupyterFrontEnd,
  { start, stop, snapshot, report, open }: Actions,
  links: KernelLinks,
  notebooks: INotebookTracker,
  showDashboard: ShowDashboard,
  words: TranslationBundle,
): void {
  const __ = words.__.bind(words);
  const notify = (): void => app.commands.notifyCommandChanged();
  notebooks.currentChanged.connect((_, panel) => {
    panel?.sessionContext.kernelChanged.connect(notify);
    notify();
  });

  const tell = ({ text, path }: Outcome): void => {
    // A message with a file is shown longer.
    Notification.info(text, {
      autoClose: path === undefined ? 4000 : 8000,
      actions: path === undefined ? [] : [{ label: __("Open"), callback: () => void open(path) }],
    });
  };
  /** Shows the result of an action on a notebook. */
  const command =
    (act: (panel: NotebookPanel) => Promise<Outcome | void>): Execute =>
    async ({ path }) => {
      const named = notebooks.find(({ context }) => context.path === path);
      const panel = path === undefined ? notebooks.currentWidget : named;
      try {
        if (!panel) {
          throw new Error(__("This needs an open notebook."));
        }
        const outcome = await act(panel);
        if (outcome?.text) {
          tell(outcome);
        }
      } catch (error) {
        Notification.error(`gpuviz: ${(error as Error).message}`);
      }
    };
  const enabled = {
    isEnabled: () => notebooks.currentWidget?.sessionContext.session?.kernel != null,
  };
  /** Adds a command that loads gpuviz in the notebook's kernel before its action. */
  const addForKernel = (
    id: string,
    label: string,
    act: (kernel: LinkedKernel, panel: NotebookPanel) => Promise<Outcome | void>,
  ): void => {
    const execute = command(async (panel) => {
      await panel.sessionContext.ready;
      const kernel = await links.find(panel.sessionContext.session?.kernel?.id);
      if (kernel === undefined) {
        throw new Error(__("The notebook has no kernel."));
      }
      await kernel.link.load();
      return act(kernel, panel);
    });
    add(id, label, execute, enabled);
  };
  addForKernel("gpuviz:load", __("Load gpuviz in This Kernel"), () => Promise.resolve());
  addForKernel("gpuviz:start", __("Start Recording the GPU"), start);
  addForKernel("gpuviz:stop", __("Stop Recording the GPU"), stop);
  addForKernel("gpuviz:save-recording", __("Save GPU Recording"), snapshot);
  addForKernel("gpuviz:save-report", __("Save GPU Report"), report);
  addForKernel("gpuviz:profile-cell", __("Profile This Cell on the GPU"), (_, panel) =>
    profileCell(panel.content, panel.sessionContext),
  );
  add(DASHBOARD_COMMAND, __("GPU Dashboard"), command(showDashboard), {
    ...enabled,
    icon: gpuIcon,
    caption: __("Show GPU memory and streams beside the notebook"),
  });
}
