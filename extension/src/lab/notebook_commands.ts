import type { ILayoutRestorer, JupyterFrontEnd } from "@jupyterlab/application";
import { Notification } from "@jupyterlab/apputils";
import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import type { TranslationBundle } from "@jupyterlab/translation";
import type { CommandRegistry } from "@lumino/commands";
import type { ReadonlyPartialJSONObject } from "@lumino/coreutils";

import type { Actions, Outcome } from "./actions.ts";
import { DASHBOARD_COMMAND, DashboardTabs } from "./dashboard_tab.ts";
import { gpuIcon } from "./icon.ts";
import type { KernelLinks, LinkedKernel } from "./kernel_links.ts";
import { profileCell } from "./profile_cell.ts";

/** Adds a command by its id, label, action and other options. */
export type AddCommand = (
  id: string,
  label: string,
  execute: CommandRegistry.ICommandOptions["execute"],
  more?: Partial<CommandRegistry.ICommandOptions>,
) => void;

type Act = (panel: NotebookPanel) => Promise<Outcome | void>;

/** Commands for the current notebook, or for that of the argument `path`. */
export class NotebookCommands {
  readonly #app: JupyterFrontEnd;
  readonly #actions: Actions;
  readonly #links: KernelLinks;
  readonly #notebooks: INotebookTracker;
  readonly #words: TranslationBundle;
  readonly #dashboards: DashboardTabs;

  constructor(
    app: JupyterFrontEnd,
    actions: Actions,
    links: KernelLinks,
    notebooks: INotebookTracker,
    words: TranslationBundle,
  ) {
    this.#app = app;
    this.#actions = actions;
    this.#links = links;
    this.#notebooks = notebooks;
    this.#words = words;
    this.#dashboards = new DashboardTabs(app, links, words);
    this.#followKernels();
  }

  addTo(add: AddCommand): void {
    const __ = this.#words.__.bind(this.#words);
    const { start, stop, snapshot, report } = this.#actions;
    const enabled = {
      isEnabled: () => this.#notebooks.currentWidget?.sessionContext.session?.kernel != null,
    };
    const kernelCommand = (
      id: string,
      label: string,
      act: (kernel: LinkedKernel, panel: NotebookPanel) => Promise<Outcome | void>,
    ): void => add(id, label, this.#command(this.#withKernel(act)), enabled);
    kernelCommand("gpuviz:load", __("Load gpuviz in This Kernel"), () => Promise.resolve());
    kernelCommand("gpuviz:start", __("Start Recording the GPU"), start);
    kernelCommand("gpuviz:stop", __("Stop Recording the GPU"), stop);
    kernelCommand("gpuviz:save-recording", __("Save GPU Recording"), snapshot);
    kernelCommand("gpuviz:save-report", __("Save GPU Report"), report);
    const profile = (_: LinkedKernel, { content, sessionContext }: NotebookPanel): Promise<void> =>
      profileCell(content, sessionContext);
    kernelCommand("gpuviz:profile-cell", __("Profile This Cell on the GPU"), profile);
    const show = this.#command((panel) => this.#dashboards.show(panel));
    add(DASHBOARD_COMMAND, __("GPU Dashboard"), show, {
      ...enabled,
      icon: gpuIcon,
      caption: __("Show GPU memory and streams beside the notebook"),
    });
  }

  /** Restores dashboards after a reload of the page. */
  restore(restorer: ILayoutRestorer): void {
    this.#dashboards.restore(restorer, this.#notebooks);
  }

  #followKernels(): void {
    const notify = (): void => this.#app.commands.notifyCommandChanged();
    this.#notebooks.currentChanged.connect((_, panel) => {
      panel?.sessionContext.kernelChanged.connect(notify);
      notify();
    });
  }

  /** Shows the result of an action on a notebook. */
  #command(act: Act): (args: ReadonlyPartialJSONObject) => Promise<void> {
    return async ({ path }) => {
      const named = this.#notebooks.find(({ context }) => context.path === path);
      const panel = path === undefined ? this.#notebooks.currentWidget : named;
      try {
        if (!panel) {
          throw new Error(this.#words.__("This needs an open notebook."));
        }
        this.#tell(await act(panel));
      } catch (error) {
        Notification.error(`gpuviz: ${(error as Error).message}`);
      }
    };
  }

  /** Loads gpuviz in the notebook's kernel before the action. */
  #withKernel(act: (kernel: LinkedKernel, panel: NotebookPanel) => Promise<Outcome | void>): Act {
    return async (panel) => {
      await panel.sessionContext.ready;
      const kernel = await this.#links.find(panel.sessionContext.session?.kernel?.id);
      if (kernel === undefined) {
        throw new Error(this.#words.__("The notebook has no kernel."));
      }
      await kernel.link.load();
      return act(kernel, panel);
    };
  }

  #tell(outcome: Outcome | void): void {
    if (!outcome?.text) {
      return;
    }
    const { text, path } = outcome;
    const open = (): void => void this.#actions.open(path ?? "");
    // A message with a file is shown longer.
    Notification.info(text, {
      autoClose: path === undefined ? 4000 : 8000,
      actions: path === undefined ? [] : [{ label: this.#words.__("Open"), callback: open }],
    });
  }
}
