type Bytes = Uint8Array<ArrayBuffer>;

/** Bytes of which parts can be had; the whole need not be in memory. */
export interface ByteSource {
  readonly byteLength: number;
  /** The bytes in [from, to). */
  slice(from: number, to: number): Bytes | Promise<Bytes>;
}

export function sourceOfBytes(bytes: Bytes): ByteSource {
  return { byteLength: bytes.byteLength, slice: (from, to) => bytes.subarray(from, to) };
}

/** So many characters are decoded at once; whole groups of four. */
const PART_CHARACTERS = 1 << 22;

/** The bytes behind base64 text that has no whitespace inside, kept out of the page's memory. */
export function sourceOfBase64(text: string): ByteSource {
  const whole = text.trim();
  const parts: Blob[] = [];
  for (let from = 0; from < whole.length; from += PART_CHARACTERS) {
    parts.push(new Blob([decoded(whole.slice(from, from + PART_CHARACTERS))]));
  }
  const blob = new Blob(parts);
  return {
    byteLength: blob.size,
    slice: async (from, to) => new Uint8Array(await blob.slice(from, to).arrayBuffer()),
  };
}

interface Decoder {
  /** Of ECMAScript 2026; not all browsers have it. */
  readonly fromBase64?: (text: string) => Bytes;
}

function decoded(text: string): Bytes {
  const native = (Uint8Array as unknown as Decoder).fromBase64;
  if (native !== undefined) {
    return native.call(Uint8Array, text);
  }
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) {
    bytes[index] = binary.charCodeAt(index);
  }
  return bytes;
}
