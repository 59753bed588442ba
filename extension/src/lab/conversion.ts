import { PageConfig, URLExt } from "@jupyterlab/coreutils";
import { ServerConnection } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";

import { COMPARISONS_OPTION, FINDINGS_OPTION, RECORDINGS_OPTION } from "../wire/codes.ts";

/** URLs of the server's converters, if it has gpuviz; set by `gpuviz/server/__init__.py`. */
const PATHS = {
  recording: PageConfig.getOption(RECORDINGS_OPTION),
  findings: PageConfig.getOption(FINDINGS_OPTION),
  comparison: PageConfig.getOption(COMPARISONS_OPTION),
};
const STILL_CONVERTING = 202;

/** What the server makes of a file. */
export type Converted = keyof typeof PATHS;

/** Whether the Jupyter server has the part of gpuviz that converts recordings. */
export const canConvert = PATHS.recording !== "";

/** The URL of what the server makes of its files: a current recording, conclusions, a page of two. */
export async function convertedUrl(
  to: Converted,
  downloadUrls: readonly string[],
  server: ServerConnection.ISettings,
  signal: AbortSignal,
  words: TranslationBundle,
): Promise<string> {
  if (!canConvert) {
    throw new Error(
      words.__(
        "Opening PyTorch snapshots and comparing need gpuviz in the Jupyter server's environment. Install it there, then restart JupyterLab.",
      ),
    );
  }
  const query = new URLSearchParams();
  for (const each of downloadUrls) {
    query.append("path", pathOnServer(each, server.baseUrl, words));
  }
  const ask = `${URLExt.join(server.baseUrl, PATHS[to])}?${query}`;
  let response: Response;
  do {
    response = await ServerConnection.makeRequest(ask, { signal }, server);
  } while (response.status === STILL_CONVERTING);
  if (!response.ok) {
    throw await ServerConnection.ResponseError.create(response);
  }
  const { file } = (await response.json()) as { readonly file: string };
  return URLExt.join(server.baseUrl, PATHS[to], file);
}

/** The path of a file below the server's root. */
function pathOnServer(downloadUrl: string, baseUrl: string, words: TranslationBundle): string {
  const { href } = location;
  const { origin, pathname } = new URL(downloadUrl, href);
  const files = new URL(URLExt.join(baseUrl, "files/"), href);
  if (origin !== files.origin || !pathname.startsWith(files.pathname)) {
    throw new Error(
      words.__("Only files on the Jupyter server can be converted; copy the file there first."),
    );
  }
  return decodeURIComponent(pathname.slice(files.pathname.length));
}
