import { release } from "../base/release.ts";
import { type Bytes, bytesOfBase64, type ByteSource } from "../wire/byte_source.ts";

/** Length of the text of a piece, a multiple of 4; a piece is kept until all of it is forgotten. */
const PIECE_LENGTH = 1 << 20;

/** Of browsers since 2025, and several times as fast as ours. */
const { fromBase64 } = Uint8Array as unknown as { fromBase64?: (text: string) => Bytes };

interface Piece {
  readonly from: number;
  readonly bytes: Bytes;
  /** How many of the bytes are not forgotten. */
  left: number;
}

/**
 * The bytes that a page embeds as base64, while the browser still reads the page.
 *
 * An element before the bytes has their last ones, which say where everything is. Text is taken out
 * of the page as it comes, so that a browser that adds to it has less to copy.
 */
export class EmbeddedBytes implements ByteSource {
  readonly byteLength: number;
  readonly #id: string;
  readonly #end: Piece;
  readonly #pieces: Piece[] = [];
  /** The last few characters of the text that came, less than a group of base64. */
  #rest = "";
  #arrived = 0;
  #isWhole = false;
  readonly #waiting: (() => void)[] = [];

  /** Takes the element with an id; `end` has the last bytes, and says where they begin. */
  constructor(id: string, end: HTMLElement) {
    this.#id = id;
    const bytes = bytesOfBase64(end.textContent ?? "");
    this.#end = { from: Number(end.dataset["from"]), bytes, left: bytes.byteLength };
    this.byteLength = this.#end.from + bytes.byteLength;
    end.remove();
    const watching = new MutationObserver(() => this.#take());
    const finish = (): void => {
      this.#take();
      this.#isWhole = true;
      this.#wake();
      watching.disconnect();
      document.getElementById(id)?.remove();
    };
    if (document.readyState === "loading") {
      watching.observe(document, { childList: true, subtree: true });
      document.addEventListener("DOMContentLoaded", finish, { once: true });
      this.#take();
    } else {
      finish();
    }
  }

  async slice(from: number, to: number): Promise<Bytes> {
    const needed = from < this.#end.from ? Math.min(to, this.#end.from) : 0;
    while (this.#arrived < needed && !this.#isWhole) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    const found = new Uint8Array(to - from);
    let length = 0;
    for (const [piece, first, last] of this.#within(from, to)) {
      found.set(piece.bytes.subarray(first, last), piece.from + first - from);
      length += Math.min(last, piece.bytes.byteLength) - first;
    }
    if (length !== found.byteLength) {
      throw new Error("The recording that the page embeds is damaged or truncated.");
    }
    return found;
  }

  forget(from: number, to: number): void {
    for (const [piece, first, last] of this.#within(from, to)) {
      piece.left -= last - first;
      if (piece.left === 0) {
        release(piece.bytes.buffer);
      }
    }
  }

  /** The pieces that have bytes of [from, to), and which of theirs. */
  *#within(from: number, to: number): Generator<[piece: Piece, first: number, last: number]> {
    for (const piece of [...this.#pieces, this.#end]) {
      const first = Math.max(from - piece.from, 0);
      const last = Math.min(to - piece.from, piece.bytes.byteLength);
      if (first < last) {
        yield [piece, first, last];
      }
    }
  }

  /** Takes the text that has come. */
  #take(): void {
    let text = this.#rest;
    for (const node of [...(document.getElementById(this.#id)?.childNodes ?? [])]) {
      text += node.nodeValue ?? "";
      // Its memory would otherwise wait for a garbage collection.
      node.nodeValue = "";
      node.remove();
    }
    const length = text.length - (text.length % 4);
    this.#rest = text.slice(length);
    for (let from = 0; from < length && !this.#isWhole; from += PIECE_LENGTH) {
      this.#add(text.slice(from, Math.min(from + PIECE_LENGTH, length)));
    }
    this.#wake();
  }

  #add(text: string): void {
    try {
      const bytes = fromBase64?.(text) ?? bytesOfBase64(text);
      this.#pieces.push({ from: this.#arrived, bytes, left: bytes.byteLength });
      this.#arrived += bytes.byteLength;
    } catch {
      // Who reads on is told.
      this.#isWhole = true;
    }
  }

  #wake(): void {
    this.#waiting.splice(0).forEach((resolve) => resolve());
  }
}
