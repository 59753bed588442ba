import { ServerConnection } from "@jupyterlab/services";

const LEAST_BETWEEN_NEWS_MS = 50;

/**
 * The bytes of a file of the Jupyter server, as they come.
 *
 * `news` gets the bytes so far and the bytes in all, 0 if unknown, at most 20 times a second.
 */
export async function download(
  url: string,
  server: ServerConnection.ISettings,
  signal: AbortSignal,
  news: (done: number, total: number) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const response = await ServerConnection.makeRequest(url, { signal }, server);
  if (!response.ok || response.body === null) {
    throw new ServerConnection.ResponseError(response);
  }
  const total = Number(response.headers.get("Content-Length") ?? 0);
  const encoded = response.headers.has("Content-Encoding");
  const chunks: Uint8Array[] = [];
  let done = 0;
  let toldMs = 0;
  for (const reader = response.body.getReader(); ;) {
    const { value } = await reader.read();
    if (value === undefined) {
      break;
    }
    chunks.push(value);
    done += value.length;
    const nowMs = performance.now();
    if (nowMs - toldMs >= LEAST_BETWEEN_NEWS_MS) {
      toldMs = nowMs;
      news(done, encoded ? 0 : total);
    }
  }
  return joined(chunks, done);
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}
