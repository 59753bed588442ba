import type { JupyterFrontEnd } from "@jupyterlab/application";
import { PathExt } from "@jupyterlab/coreutils";

import type { CardActions } from "./kernel_card.ts";
import type { LinkedKernel } from "./kernel_links.ts";
import type { Settings } from "./settings.ts";

/** What buttons and commands do with a kernel; each returns a sentence for the user. */
export class Actions implements CardActions {
  readonly #app: JupyterFrontEnd;
  readonly #settings: Settings;

  constructor(app: JupyterFrontEnd, settings: Settings) {
    this.#app = app;
    this.#settings = settings;
  }

  readonly start = ({ link }: LinkedKernel): Promise<string> => {
    return link.request("start", this.#settings.recordingOptions());
  };

  readonly stop = ({ link }: LinkedKernel): Promise<string> => link.request("stop");

  readonly snapshot = (kernel: LinkedKernel): Promise<string> => {
    return kernel.link.request("snapshot", { path: fileName(kernel.path, "gpuviz") });
  };

  readonly report = (kernel: LinkedKernel): Promise<string> => {
    const path = fileName(kernel.path, "html");
    return kernel.link.request("report", { ...this.#settings.reportOptions(), path });
  };

  readonly dashboard = async ({ path }: LinkedKernel): Promise<string> => {
    await this.#app.commands.execute("gpuviz:dashboard", { path });
    return "";
  };
}

/** A file beside the notebook: a kernel works in the folder of its notebook. */
function fileName(notebook: string, suffix: string): string {
  const stem = PathExt.basename(notebook, PathExt.extname(notebook)) || "gpuviz";
  const now = new Date();
  const digits = (value: number): string => String(value).padStart(2, "0");
  const day = [now.getFullYear(), now.getMonth() + 1, now.getDate()].map(digits).join("");
  const time = [now.getHours(), now.getMinutes(), now.getSeconds()].map(digits).join("");
  return `${stem}-${day}-${time}.${suffix}`;
}
