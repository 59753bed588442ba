import { PickleError } from "./pickle_value.ts";

const LONGEST_PLAIN_TEXT = 64;

/** The bytes of a pickle, read from their start to their end. */
export class PickleBytes {
  readonly size: number;
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly #view: DataView<ArrayBuffer>;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #offset = 0;

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.size = bytes.length;
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Of the next byte. */
  get offset(): number {
    return this.#offset;
  }

  byte(): number {
    return this.#bytes[this.skip(1)] ?? 0;
  }

  uint16(): number {
    return this.#view.getUint16(this.skip(2), true);
  }

  int32(): number {
    return this.#view.getInt32(this.skip(4), true);
  }

  uint32(): number {
    return this.#view.getUint32(this.skip(4), true);
  }

  /** Of 64 bits; as near as a double comes. */
  uint64(): number {
    const low = this.uint32();
    return this.uint32() * 2 ** 32 + low;
  }

  float64(): number {
    return this.#view.getFloat64(this.skip(8), false);
  }

  /** An integer of 0 to 8 bytes in two's complement. */
  integer(width: number): number | bigint {
    const start = this.skip(width);
    if (width === 0) {
      return 0;
    }
    const sign = (this.#bytes[start + width - 1] ?? 0) & 0x80 ? 0xff : 0;
    const byteAt = (place: number): number =>
      place < width ? (this.#bytes[start + place] ?? 0) : sign;
    const word = (place: number): number =>
      byteAt(place) |
      (byteAt(place + 1) << 8) |
      (byteAt(place + 2) << 16) |
      (byteAt(place + 3) << 24);
    const low = word(0) >>> 0;
    const high = word(4);
    const value = high * 2 ** 32 + low;
    return Number.isSafeInteger(value) ? value : (BigInt(high) << 32n) | BigInt(low);
  }

  text(size: number): string {
    const start = this.skip(size);
    if (size <= LONGEST_PLAIN_TEXT) {
      const text = this.#asciiText(start, size);
      if (text !== undefined) {
        return text;
      }
    }
    return this.#decoder.decode(this.#bytes.subarray(start, start + size));
  }

  /** Goes on by some bytes and returns where they begin. */
  skip(size: number): number {
    const start = this.#offset;
    if (size > this.size - start) {
      throw new PickleError(
        this.size,
        `the file is truncated; ${size} bytes must follow byte ${start}, there are ${this.size - start}`,
      );
    }
    this.#offset = start + size;
    return start;
  }

  /** Undefined where there are other letters. */
  #asciiText(start: number, size: number): string | undefined {
    let text = "";
    for (let place = start; place < start + size; place += 1) {
      const code = this.#bytes[place] ?? 0;
      if (code >= 0x80) {
        return undefined;
      }
      text += String.fromCharCode(code);
    }
    return text;
  }
}
