import { readInt64, readObject, readUint8 } from "@uwdata/flechette/src/util/read.js";

import { type Bytes, joined } from "./byte_source.ts";

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
  const head: Bytes[] = [];
  let batches = 0;
  for await (const message of messagesOf(pieces)) {
    const field = readObject(message.subarray(PREFIX_BYTES), 0);
    if (field(HEADER_TYPE_FIELD, readUint8, 0) === RECORD_BATCH) {
      batches += 1;
      yield joined([...head, message]);
    } else {
      head.push(message);
    }
  }
  if (batches === 0) {
    yield joined(head);
  }
}

/** The complete messages of a stream. */
async function* messagesOf(pieces: AsyncIterable<Bytes>): AsyncGenerator<Bytes> {
  let waiting: Bytes[] = [];
  let length = 0;
  let needed = PREFIX_BYTES;
  for await (const piece of pieces) {
    waiting.push(piece);
    length += piece.byteLength;
    while (length >= needed) {
      const bytes = joined(waiting);
      const end = firstMessageEnd(bytes);
      waiting = [bytes];
      needed = end;
      if (length >= end) {
        yield bytes.subarray(0, end);
        waiting = [bytes.subarray(end)];
        length -= end;
        needed = PREFIX_BYTES;
      }
    }
  }
}

/** Where the first message ends, or its metadata if incomplete; Infinity after the last message. */
function firstMessageEnd(bytes: Bytes): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0, true) !== CONTINUES) {
    throw new Error("The recording has a table that is no Arrow stream.");
  }
  const metadataBytes = view.getInt32(4, true);
  const bodyFrom = PREFIX_BYTES + metadataBytes;
  if (metadataBytes === 0) {
    return Infinity;
  }
  if (bytes.byteLength < bodyFrom) {
    return bodyFrom;
  }
  const field = readObject(bytes.subarray(PREFIX_BYTES), 0);
  return bodyFrom + field(BODY_LENGTH_FIELD, readInt64, 0);
}
