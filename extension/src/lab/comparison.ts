import type { JupyterFrontEnd } from "@jupyterlab/application";
import { IFrame, MainAreaWidget } from "@jupyterlab/apputils";
import { ServerConnection } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";

import { convertedUrl } from "./conversion.ts";
import { gpuIcon } from "./icon.ts";

/** Opens a tab with two recordings in one workbench, on the page that the server makes of them. */
export function showComparison(
  app: JupyterFrontEnd,
  before: string,
  after: string,
  words: TranslationBundle,
): void {
  const { contents, serverSettings: server } = app.serviceManager;
  const frame = new IFrame({ sandbox: ["allow-scripts"] });
  const stop = new AbortController();
  const load = async (): Promise<void> => {
    const files = await Promise.all([before, after].map((path) => contents.getDownloadUrl(path)));
    const url = await convertedUrl("comparison", files, server, stop.signal, words);
    const response = await ServerConnection.makeRequest(url, { signal: stop.signal }, server);
    if (!response.ok) {
      throw await ServerConnection.ResponseError.create(response);
    }
    const page = new Blob([await response.arrayBuffer()], { type: "text/html" });
    frame.url = URL.createObjectURL(page);
    frame.disposed.connect(() => URL.revokeObjectURL(frame.url));
  };
  const tab = new MainAreaWidget({ content: frame, reveal: load() });
  frame.disposed.connect(() => stop.abort());
  const [first = "", second = ""] = [before, after].map((path) => path.split("/").at(-1));
  tab.title.label = words.__("%1 and %2", first, second);
  tab.title.icon = gpuIcon;
  app.shell.add(tab, "main");
  app.shell.activateById(tab.id);
}
