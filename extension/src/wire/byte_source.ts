export type Bytes = Uint8Array<ArrayBuffer>;

/** Bytes that can be read in parts, without loading all into memory. */
export interface ByteSource {
  readonly byteLength: number;
  /** The bytes in [from, to). */
  slice(from: number, to: number): Bytes | Promise<Bytes>;
  /** Returns the memory of the bytes in [from, to), which are not read again. */
  forget?(from: number, to: number): void;
}

export function sourceOfBytes(bytes: Bytes): ByteSource {
  return { byteLength: bytes.byteLength, slice: (from, to) => bytes.subarray(from, to) };
}

/** The bytes of base64 text without whitespace. */
export function sourceOfBase64(text: string): ByteSource {
  const whole = text.trim();
  const padding = whole.endsWith("==") ? 2 : whole.endsWith("=") ? 1 : 0;
  return {
    byteLength: (whole.length / 4) * 3 - padding,
    slice: (from, to) => {
      const first = Math.floor(from / 3);
      const bytes = bytesOfBase64(whole.slice(4 * first, 4 * Math.ceil(to / 3)));
      return bytes.subarray(from - 3 * first, to - 3 * first);
    },
  };
}

/** The bytes of base64 text without whitespace. */
export function bytesOfBase64(text: string): Bytes {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) {
    bytes[index] = binary.charCodeAt(index);
  }
  return bytes;
}

/** The pieces in one array; a single piece is returned as it is. */
export function joined(pieces: readonly Bytes[]): Bytes {
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) {
    return only;
  }
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.byteLength, 0));
  let offset = 0;
  for (const piece of pieces) {
    whole.set(piece, offset);
    offset += piece.byteLength;
  }
  return whole;
}

/** The pieces of a stream, which is cancelled when its reader stops early. */
export async function* piecesOf(stream: ReadableStream<Bytes>): AsyncGenerator<Bytes> {
  const reader = stream.getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      yield read.value;
    }
  } finally {
    await reader.cancel();
  }
}
