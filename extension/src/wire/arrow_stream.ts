import { readInt64, readObject, readUint8 } from "@uwdata/flechette/src/util/read.js";

type Bytes = Uint8Array<ArrayBuffer>;

// Layouts from Arrow's Message.fbs: fields by their positions in a table's vtable.
const CONTINUES = 0xffffffff;
const HEADER_TYPE_FIELD = 6;
const BODY_LENGTH_FIELD = 10;
const RECORD_BATCH = 3;
const PREFIX_BYTES = 8;

/**
 * Splits an Arrow stream that arrives in pieces into complete streams of one record batch each.
 *
 * A stream without rows has no record batch.
 */
export async function* recordBatches(pieces: AsyncIterable<Bytes>): AsyncGenerator<Bytes> {
  const waiting = new Waiting();
  const head: Bytes[] = [];
  let batches = 0;
  for await (const piece of pieces) {
    waiting.push(piece);
    for (let message = waiting.take(); message !== undefined; message = waiting.take()) {
      if (message.isBatch) {
        batches += 1;
        yield joined([...head, message.bytes]);
      } else {
        head.push(message.bytes);
      }
    }
  }
  if (batches === 0) {
    yield joined(head);
  }
}

interface Message {
  readonly bytes: Bytes;
  readonly isBatch: boolean;
}

/** Received bytes that are not a complete message yet. */
class Waiting {
  #pieces: Bytes[] = [];
  #length = 0;
  #needed = PREFIX_BYTES;

  push(piece: Bytes): void {
    this.#pieces.push(piece);
    this.#length += piece.byteLength;
  }

  /** The next message; undefined if it is incomplete or there is none. */
  take(): Message | undefined {
    if (this.#length < this.#needed) {
      return undefined;
    }
    const bytes = joined(this.#pieces);
    this.#pieces = [bytes];
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (view.getUint32(0, true) !== CONTINUES) {
      throw new Error("The recording has a table that is no Arrow stream.");
    }
    const metadataBytes = view.getInt32(4, true);
    const bodyFrom = PREFIX_BYTES + metadataBytes;
    if (metadataBytes === 0 || bytes.byteLength < bodyFrom) {
      this.#needed = metadataBytes === 0 ? Infinity : bodyFrom;
      return undefined;
    }
    const field = readObject(bytes.subarray(PREFIX_BYTES), 0);
    const end = bodyFrom + field(BODY_LENGTH_FIELD, readInt64, 0);
    this.#needed = bytes.byteLength < end ? end : PREFIX_BYTES;
    if (bytes.byteLength < end) {
      return undefined;
    }
    this.#pieces = [bytes.subarray(end)];
    this.#length = bytes.byteLength - end;
    const isBatch = field(HEADER_TYPE_FIELD, readUint8, 0) === RECORD_BATCH;
    return { bytes: bytes.subarray(0, end), isBatch };
  }
}

function joined(pieces: readonly Bytes[]): Bytes {
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
