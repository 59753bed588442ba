import { ServerConnection } from "@jupyterlab/services";

import {
  type Bytes,
  type ByteSource,
  joined,
  piecesOf,
  sourceOfBytes,
} from "../wire/byte_source.ts";

/** Size of a range request. */
const CHUNK_BYTES = 4 << 20;
/** More than the number of tables that are read concurrently. */
const KEPT_CHUNKS = 8;
const LEAST_BETWEEN_NEWS_MS = 50;

/** Fetches a part of a file. */
type Fetch = (headers?: Record<string, string>) => Promise<Response>;

/**
 * A file of the Jupyter server, fetched in ranges on demand if the server supports them.
 *
 * While a whole file is downloaded, `news` gets the bytes so far and the total, 0 if unknown.
 */
export async function openRemote(
  url: string,
  server: ServerConnection.ISettings,
  signal: AbortSignal,
  news: (done: number, total: number) => void,
): Promise<ByteSource> {
  const get: Fetch = async (headers = {}) => {
    const response = await ServerConnection.makeRequest(url, { signal, headers }, server);
    if (!response.ok) {
      throw new ServerConnection.ResponseError(response);
    }
    return response;
  };
  const first = await get({ Range: `bytes=0-${CHUNK_BYTES - 1}` });
  const total = /^bytes 0-\d+\/(\d+)$/.exec(first.headers.get("Content-Range") ?? "")?.[1];
  if (first.status === 206 && total !== undefined) {
    return new RemoteFile(get, Number(total), await bytesOf(first));
  }
  return sourceOfBytes(await whole(first, news));
}

/** Reads a file in chunks, and caches the latest. */
class RemoteFile implements ByteSource {
  readonly byteLength: number;
  readonly #get: Fetch;
  readonly #chunks = new Map<number, Promise<Bytes>>();

  constructor(get: Fetch, byteLength: number, first: Bytes) {
    this.#get = get;
    this.byteLength = byteLength;
    this.#chunks.set(0, Promise.resolve(first));
  }

  async slice(from: number, to: number): Promise<Bytes> {
    const last = Math.ceil(to / CHUNK_BYTES) - 1;
    const parts: Bytes[] = [];
    for (let index = Math.floor(from / CHUNK_BYTES); index <= last; index += 1) {
      const chunk = await this.#chunk(index);
      const start = index * CHUNK_BYTES;
      parts.push(chunk.subarray(Math.max(from - start, 0), to - start));
    }
    return joined(parts);
  }

  #chunk(index: number): Promise<Bytes> {
    const known = this.#chunks.get(index);
    const from = index * CHUNK_BYTES;
    const to = Math.min(from + CHUNK_BYTES, this.byteLength);
    const chunk = known ?? this.#get({ Range: `bytes=${from}-${to - 1}` }).then(bytesOf);
    this.#chunks.delete(index);
    this.#chunks.set(index, chunk);
    const [oldest] = this.#chunks.keys();
    if (this.#chunks.size > KEPT_CHUNKS && oldest !== undefined) {
      this.#chunks.delete(oldest);
    }
    return chunk;
  }
}

async function bytesOf(response: Response): Promise<Bytes> {
  return new Uint8Array(await response.arrayBuffer());
}

async function whole(
  response: Response,
  news: (done: number, total: number) => void,
): Promise<Bytes> {
  const isPacked = response.headers.has("Content-Encoding");
  const total = isPacked ? 0 : Number(response.headers.get("Content-Length") ?? 0);
  const parts: Bytes[] = [];
  let done = 0;
  let toldMs = 0;
  for await (const part of response.body === null ? [] : piecesOf(response.body)) {
    parts.push(part);
    done += part.length;
    const nowMs = performance.now();
    if (nowMs - toldMs >= LEAST_BETWEEN_NEWS_MS) {
      toldMs = nowMs;
      news(done, total);
    }
  }
  return joined(parts);
}
