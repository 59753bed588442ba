import type { ILayoutRestorer, JupyterFrontEnd } from "@jupyterlab/application";
import { MainAreaWidget, Notification, WidgetTracker } from "@jupyterlab/apputils";
import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import type { Kernel } from "@jupyterlab/services";
import { OutputAreaModel, SimplifiedOutputArea } from "@jupyterlab/outputarea";
import type { TranslationBundle } from "@jupyterlab/translation";

import { gpuIcon } from "./icon.ts";
import type { KernelLinks } from "./kernel_links.ts";

// The name stays out of the user's namespace.
const SHOW = "__import__('gpuviz').dashboard()";
/** A new dashboard replaces the previous one, like that of a cell. */
const METADATA = { cellId: "gpuviz-dashboard-tab" };
const NAMESPACE = "gpuviz-dashboards";
/** Shows the dashboard of the current notebook, or of the argument `path`. */
export const DASHBOARD_COMMAND = "gpuviz:dashboard";

export type ShowDashboard = (panel: NotebookPanel) => Promise<void>;

/**
 * Returns a function that opens a notebook's dashboard in a tab beside the notebook, or activates
 * the tab if it is open.
 *
 * Restores the tabs after a reload of the page, as soon as their notebooks are open.
 */
export function dashboardTabs(
  { shell }: JupyterFrontEnd,
  links: KernelLinks,
  notebooks: INotebookTracker,
  restorer: ILayoutRestorer | null,
  words: TranslationBundle,
): ShowDashboard {
  const tracker = new WidgetTracker<DashboardTab>({ namespace: NAMESPACE });
  void restorer?.restore(tracker, {
    command: DASHBOARD_COMMAND,
    args: ({ path }) => ({ path }),
    name: ({ path }) => path,
    when: notebooks.restored,
  });
  return async (panel) => {
    const open = tracker.find((tab) => tab.panel === panel);
    if (open !== undefined) {
      shell.activateById(open.id);
      return;
    }
    const tab = new DashboardTab(panel, links, words);
    await tracker.add(tab);
    panel.context.pathChanged.connect(() => void tracker.save(tab));
    shell.add(tab, "main", { mode: "split-right", ref: panel.id });
    // Not awaited, because restoring a page must not wait for kernels.
    void tab.fill();
  };
}

/** The output of `gpuviz.dashboard()`, which is run again for each new kernel. */
class DashboardTab extends MainAreaWidget<SimplifiedOutputArea> {
  readonly panel: NotebookPanel;
  readonly #links: KernelLinks;
  readonly #words: TranslationBundle;
  /** The kernel whose dashboard is shown, until it ends. */
  #shownBy = "";

  constructor(panel: NotebookPanel, links: KernelLinks, words: TranslationBundle) {
    // Only the notebook's own renderers can show its widgets.
    const { rendermime } = panel.content;
    super({
      content: new SimplifiedOutputArea({
        model: new OutputAreaModel({ trusted: true }),
        rendermime,
      }),
    });
    this.panel = panel;
    this.#links = links;
    this.#words = words;
    this.id = `gpuviz-dashboard-${panel.id}`;
    this.content.addClass("gpuviz-dashboard-tab");
    this.title.icon = gpuIcon;
    this.#nameAfterNotebook();
    panel.context.pathChanged.connect(this.#nameAfterNotebook, this);
    panel.disposed.connect(this.dispose, this);
    panel.sessionContext.statusChanged.connect(this.#followKernel, this);
  }

  get path(): string {
    return this.panel.context.path;
  }

  /** Shows the dashboard of the notebook's kernel, unless shown already; notifies of errors. */
  async fill(): Promise<void> {
    const { sessionContext } = this.panel;
    await sessionContext.ready;
    const kernel = sessionContext.session?.kernel;
    if (!kernel || kernel.id === this.#shownBy || this.isDisposed) {
      return;
    }
    this.#shownBy = kernel.id;
    try {
      const linked = await this.#links.find(kernel.id);
      await linked?.link.load();
      const content = { code: SHOW, store_history: false, stop_on_error: true };
      const future = kernel.requestExecute(content, false, METADATA);
      this.content.future = future;
      await future.done;
    } catch (error) {
      // If it failed because the kernel ended in the meantime, the next kernel tries again.
      if (kernel.id === this.#shownBy && !this.isDisposed) {
        Notification.error(`gpuviz: ${(error as Error).message}`);
      }
    }
  }

  #followKernel(_: unknown, status: Kernel.Status): void {
    if (status === "idle") {
      void this.fill();
    } else if (status === "restarting" || status === "autorestarting" || status === "dead") {
      this.content.model.clear();
      this.#shownBy = "";
    }
  }

  #nameAfterNotebook(): void {
    const { localPath } = this.panel.context;
    this.title.label = this.#words.__("GPU: %1", localPath.split("/").at(-1) ?? "");
  }
}
