import { PageConfig, URLExt } from "@jupyterlab/coreutils";
import { ServerConnection } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";

/** URL of the server's converter, if it has gpuviz; set by `gpuviz/server/__init__.py`. */
const PATH = PageConfig.getOption("gpuvizRecordings");
const STILL_CONVERTING = 202;

/** Whether the Jupyter server has the part of gpuviz that converts recordings. */
export const canConvert = PATH !== "";

/** The URL of a current `.gpuviz` file to which the server converts one of its files. */
export async function convertedUrl(
  downloadUrl: string,
  server: ServerConnection.ISettings,
  signal: AbortSignal,
  words: TranslationBundle,
): Promise<string> {
  if (!canConvert) {
    throw new Error(
      words.__(
        "Opening PyTorch snapshots needs gpuviz in the Jupyter server's environment: pip install gpuviz, then restart JupyterLab.",
      ),
    );
  }
  const path = pathOnServer(downloadUrl, server.baseUrl);
  if (path === undefined) {
    throw new Error(
      words.__("Only files on the Jupyter server can be converted; copy the file there first."),
    );
  }
  const ask = URLExt.join(server.baseUrl, PATH) + URLExt.objectToQueryString({ path });
  let response: Response;
  do {
    response = await ServerConnection.makeRequest(ask, { signal }, server);
  } while (response.status === STILL_CONVERTING);
  if (!response.ok) {
    throw await ServerConnection.ResponseError.create(response);
  }
  const { file } = (await response.json()) as { readonly file: string };
  return URLExt.join(server.baseUrl, PATH, file);
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
