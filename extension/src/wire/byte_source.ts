type Bytes = Uint8Array<ArrayBuffer>;

/** Bytes that can be read in parts, without loading all into memory. */
export interface ByteSource {
  readonly byteLength: number;
  /** The bytes in [from, to). */
  slice(from: number, to: number): Bytes | Promise<Bytes>;
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
      const binary = atob(whole.slice(4 * first, 4 * Math.ceil(to / 3)));
      const bytes = new Uint8Array(binary.length);
      for (let index = 0; index < binary.length; index += 1) {
        bytes[index] = binary.charCodeAt(index);
      }
      return bytes.subarray(from - 3 * first, to - 3 * first);
    },
  };
}
