import type { JupyterFrontEnd } from "@jupyterlab/application";
import { PathExt } from "@jupyterlab/coreutils";
import type { JSONObject } from "@lumino/coreutils";

import type { LinkedKernel } from "./kernel_links.ts";
import type { HeldMemory } from "./panel_messages.ts";
import { FACTORY } from "./recordings.ts";
import type { Settings } from "./settings.ts";

/** The result of a button or a command: a sentence for the user, and the file written. */
export interface Outcome {
  readonly text: string;
  /** The path in JupyterLab's contents; undefined if there is none, or the server cannot see it. */
  readonly path?: string | undefined;
  /** What keeps memory alive; undefined if that was not asked for. */
  readonly held?: HeldMemory | undefined;
}

/** An action of a button or a command on a kernel. */
export type Action = (kernel: LinkedKernel) => Promise<Outcome>;

/** The actions of buttons and commands. */
export interface Actions {
  readonly start: Action;
  readonly stop: Action;
  readonly snapshot: Action;
  readonly report: Action;
  readonly dashboard: Action;
  readonly leaks: Action;
  /** Lets go of something that keeps memory alive, by the key of its offer. */
  readonly release: (kernel: LinkedKernel, offer: string) => Promise<Outcome>;
  /** Shows a recording or a report in a new tab. */
  readonly open: (path: string) => Promise<void>;
}

export function actionsIn(
  { commands, serviceManager }: JupyterFrontEnd,
  settings: Settings,
): Actions {
  const write = async (
    { link, path }: LinkedKernel,
    kind: "snapshot" | "report",
    suffix: string,
    options: JSONObject,
  ): Promise<Outcome> => {
    const name = fileName(path, suffix);
    const { text } = await link.request(kind, { ...options, path: name });
    const written = PathExt.join(PathExt.dirname(path), name);
    // A kernel on another machine writes its files there.
    const isHere = await serviceManager.contents.get(written, { content: false }).then(
      () => true,
      () => false,
    );
    if (isHere && commands.hasCommand("filebrowser:refresh")) {
      void commands.execute("filebrowser:refresh");
    }
    return { text, path: isHere ? written : undefined };
  };
  return {
    start: ({ link }) => link.request("start", settings.recordingOptions()),
    stop: ({ link }) => link.request("stop"),
    snapshot: (kernel) => write(kernel, "snapshot", "gpuviz", {}),
    report: (kernel) => write(kernel, "report", "html", settings.reportOptions()),
    leaks: ({ link }) => link.request("leaks"),
    release: ({ link }, offer) => link.request("release", { offer }),
    dashboard: async ({ path }) => {
      await commands.execute("gpuviz:dashboard", { path });
      return { text: "" };
    },
    open: async (path) => {
      await commands.execute("docmanager:open", { path, factory: FACTORY });
    },
  };
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
