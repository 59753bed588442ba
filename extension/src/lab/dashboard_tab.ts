import type { JupyterFrontEnd } from "@jupyterlab/application";
import { MainAreaWidget } from "@jupyterlab/apputils";
import type { NotebookPanel } from "@jupyterlab/notebook";
import { OutputAreaModel, SimplifiedOutputArea } from "@jupyterlab/outputarea";
import type { TranslationBundle } from "@jupyterlab/translation";

import { gpuIcon } from "./icon.ts";

// The name stays out of the user's namespace.
const SHOW = "__import__('gpuviz').dashboard()";

/** Opens a notebook's dashboard in a tab beside it, or brings the one that is open to the front. */
export class DashboardTabs {
  readonly #app: JupyterFrontEnd;
  readonly #words: TranslationBundle;
  readonly #open = new Map<string, MainAreaWidget<SimplifiedOutputArea>>();

  constructor(app: JupyterFrontEnd, words: TranslationBundle) {
    this.#app = app;
    this.#words = words;
  }

  async show(panel: NotebookPanel): Promise<void> {
    const { context, sessionContext } = panel;
    const key = panel.id;
    const known = this.#open.get(key);
    if (known?.isDisposed === false) {
      this.#app.shell.activateById(known.id);
      return;
    }
    // The notebook's own renderers know its widgets.
    const content = new SimplifiedOutputArea({
      model: new OutputAreaModel({ trusted: true }),
      rendermime: panel.content.rendermime,
    });
    content.addClass("gpuviz-dashboard-tab");
    const tab = new MainAreaWidget({ content });
    tab.id = `gpuviz-dashboard-${panel.id}`;
    tab.title.icon = gpuIcon;
    tab.title.label = this.#words.__("GPU: %1", context.localPath.split("/").at(-1) ?? "");
    this.#open.set(key, tab);
    panel.disposed.connect(() => {
      tab.dispose();
    });
    this.#app.shell.add(tab, "main", { mode: "split-right", ref: panel.id });
    await SimplifiedOutputArea.execute(SHOW, content, sessionContext);
  }
}
