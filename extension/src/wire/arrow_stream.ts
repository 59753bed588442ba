import { readInt64, readObject, readUint8 } from "@uwdata/flechette/src/util/read.js";

import { type Bytes, joined } from "./byte_source.ts";

// Layouts from Arrow's Message.fbs: fields by their positions in a table's vtable.
const CONTINUES = 0xffffffff;
const HEADER_TYPE_FIELD = 6;
const BODY_LENGTH_FIELD = 10;
const RECORD_BATCH = 3;
const PREFIX_BYTES = 8;

/** A message in pieces, which are copied only once. */
interface Message {
  readonly type: number;
  readonly pieces: readonly Bytes[];
}

/**
 * Splits an Arrow stream that arrives in pieces into complete streams of one record batch each.
 *
 * A stream without rows has no record batch.
 */
export async function* recordBatches(pieces: AsyncIterable<Bytes>): AsyncGenerator<Bytes> {
  const head: Bytes[] = [];
  let batches = 0;
  for await (const message of messagesOf(pieces)) {
    if (message.type === RECORD_BATCH) {
      batches += 1;
      yield joined([...head, ...message.pieces]);
    } else {
      head.push(...message.pieces);
    }
  }
  if (batches === 0) {
    yield joined(head);
  }
}

/** The complete messages of a stream. */
async function* messagesOf(pieces: AsyncIterable<Bytes>): AsyncGenerator<Message> {
  let waiting: Bytes[] = [];
  let length = 0;
  let needed = PREFIX_BYTES;
  let type: number | undefined;
  for await (const piece of pieces) {
    waiting.push(piece);
    length += piece.byteLength;
    while (length >= needed) {
      if (type === undefined) {
        waiting = [joined(waiting)];
        ({ needed, type } = beginOf(waiting[0] ?? piece));
      } else {
        yield { type, pieces: between(waiting, 0, needed) };
        waiting = between(waiting, needed, length);
        length -= needed;
        needed = PREFIX_BYTES;
        type = undefined;
      }
    }
  }
}

/** The bytes in [from, to) of pieces that follow each other. */
function between(pieces: readonly Bytes[], from: number, to: number): Bytes[] {
  let begin = 0;
  const parts = pieces.map((piece) => {
    const part = piece.subarray(Math.max(from - begin, 0), Math.max(to - begin, 0));
    begin += piece.byteLength;
    return part;
  });
  return parts.filter((part) => part.byteLength > 0);
}

/** How long a message is, and its type; or how much is needed to know, which is never after the last. */
function beginOf(bytes: Bytes): { readonly needed: number; readonly type: number | undefined } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0, true) !== CONTINUES) {
    throw new Error("The recording has a table that is no Arrow stream.");
  }
  const metadataBytes = view.getInt32(4, true);
  const bodyFrom = PREFIX_BYTES + metadataBytes;
  if (metadataBytes === 0 || bytes.byteLength < bodyFrom) {
    return { needed: metadataBytes === 0 ? Infinity : bodyFrom, type: undefined };
  }
  const field = readObject(bytes.subarray(PREFIX_BYTES), 0);
  return {
    needed: bodyFrom + field(BODY_LENGTH_FIELD, readInt64, 0),
    type: field(HEADER_TYPE_FIELD, readUint8, 0),
  };
}
