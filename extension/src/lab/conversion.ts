import { PageConfig, URLExt } from "@jupyterlab/coreutils";
import { ServerConnection } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";

import { FINDINGS_OPTION, RECORDINGS_OPTION } from "../wire/codes.ts";

/** URLs of the server's converters, if it has gpuviz; set by `gpuviz/server/__init__.py`. */
const PATHS = {
  recording: PageConfig.getOption(RECORDINGS_OPTION),
  findings: PageConfig.getOption(FINDINGS_OPTION),
};
const STILL_CONVERTING = 202;

/** What the server makes of a file. */
export type Converted = keyof typeof PATHS;

/** Whether the Jupyter server has the part of gpuviz that converts recordings. */
export const canConvert = PATHS.recording !== "";

/** The URL of what the server makes of one of its files: a current `.gpuviz` file, or HTML. */
export async function convertedUrl(
  to: Converted,
  downloadUrl: string,
  server: ServerConnection.ISettings,
  signal: AbortSignal,
  words: TranslationBundle,
): Promise<string> {
  if (!canConvert) {
    throw new Error(
      words.__(
        "Opening PyTorch snapshots needs gpuviz in the Jupyter server's environment. Install it there, then restart JupyterLab.",
      ),
    );
  }
  const path = pathOnServer(downloadUrl, server.baseUrl);
  if (path === undefined) {
    throw new Error(
      words.__("Only files on the Jupyter server can be converted; copy the file there first."),
    );
  }
  const ask = URLExt.join(server.baseUrl, PATHS[to]) + URLExt.objectToQueryString({ path });
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

/** The path of a file below the server's root; undefined if the server does not have it. */
function pathOnServer(downloadUrl: string, baseUrl: string): string | undefined {
  const { href } = location;
  const { origin, pathname } = new URL(downloadUrl, href);
  const files = new URL(URLExt.join(baseUrl, "files/"), href);
  return origin === files.origin && pathname.startsWith(files.pathname)
    ? decodeURIComponent(pathname.slice(files.pathname.length))
    : undefined;
}
