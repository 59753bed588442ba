import type { JupyterFrontEnd } from "@jupyterlab/application";
import { PathExt } from "@jupyterlab/coreutils";
import type { JSONObject } from "@lumino/coreutils";

import type { LinkedKernel } from "./kernel_links.ts";
import { FACTORY } from "./recordings.ts";
import type { Settings } from "./settings.ts";

/** The result of a button or a command: a sentence for the user, and the file written. */
export interface Outcome {
  readonly text: string;
  /** The path in JupyterLab's contents; undefined if there is none, or the server cannot see it. */
  readonly path?: string | undefined;
}

/** The actions of buttons and commands on a kernel. */
export class Actions {
  readonly #app: JupyterFrontEnd;
  readonly #settings: Settings;

  constructor(app: JupyterFrontEnd, settings: Settings) {
    this.#app = app;
    this.#settings = settings;
  }

  readonly start = async ({ link }: LinkedKernel): Promise<Outcome> => {
    return { text: await link.request("start", this.#settings.recordingOptions()) };
  };

  readonly stop = async ({ link }: LinkedKernel): Promise<Outcome> => {
    return { text: await link.request("stop") };
  };

  readonly snapshot = (kernel: LinkedKernel): Promise<Outcome> => {
    return this.#write(kernel, "snapshot", "gpuviz", {});
  };

  readonly report = (kernel: LinkedKernel): Promise<Outcome> => {
    return this.#write(kernel, "report", "html", this.#settings.reportOptions());
  };

  readonly dashboard = async ({ path }: LinkedKernel): Promise<Outcome> => {
    await this.#app.commands.execute("gpuviz:dashboard", { path });
    return { text: "" };
  };

  /** Shows a recording or a report in a new tab. */
  readonly open = async (path: string): Promise<void> => {
    await this.#app.commands.execute("docmanager:open", { path, factory: FACTORY });
  };

  async #write(
    { link, path }: LinkedKernel,
    kind: "snapshot" | "report",
    suffix: string,
    options: JSONObject,
  ): Promise<Outcome> {
    const name = fileName(path, suffix);
    const text = await link.request(kind, { ...options, path: name });
    const written = PathExt.join(PathExt.dirname(path), name);
    // A kernel on another machine writes its files there.
    const { serviceManager, commands } = this.#app;
    const isHere = await serviceManager.contents.get(written, { content: false }).then(
      () => true,
      () => false,
    );
    if (isHere && commands.hasCommand("filebrowser:refresh")) {
      void commands.execute("filebrowser:refresh");
    }
    return { text, path: isHere ? written : undefined };
  }
}

/** A name for a file beside the notebook. */
function fileName(notebook: string, suffix: string): string {
  const stem = PathExt.basename(notebook, PathExt.extname(notebook)) || "gpuviz";
  const now = new Date();
  const digits = (value: number): string => String(value).padStart(2, "0");
  const day = [now.getFullYear(), now.getMonth() + 1, now.getDate()].map(digits).join("");
  const time = [now.getHours(), now.getMinutes(), now.getSeconds()].map(digits).join("");
  return `${stem}-${day}-${time}.${suffix}`;
}
