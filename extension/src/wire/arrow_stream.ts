import { firstMessage, HeaderType } from "./arrow_message.ts";
import { type Bytes, joined } from "./byte_source.ts";

/**
 * Splits an Arrow stream that arrives in pieces into complete streams of one record batch each.
 *
 * A stream without rows has no record batch.
 */
export async function* recordBatches(pieces: AsyncIterable<Bytes>): AsyncGenerator<Bytes> {
  const head: Bytes[] = [];
  let batches = 0;
  for await (const { bytes, headerType } of messagesOf(pieces)) {
    if (headerType === HeaderType.recordBatch) {
      batches += 1;
      yield joined([...head, bytes]);
    } else {
      head.push(bytes);
    }
  }
  if (batches === 0) {
    yield joined(head);
  }
}

/** The complete messages of a stream. */
async function* messagesOf(
  pieces: AsyncIterable<Bytes>,
): AsyncGenerator<{ readonly bytes: Bytes; readonly headerType: number }> {
  let waiting: Bytes[] = [];
  let length = 0;
  let needed = 0;
  for await (const piece of pieces) {
    waiting.push(piece);
    length += piece.byteLength;
    while (length >= needed) {
      const bytes = joined(waiting);
      const message = firstMessage(bytes);
      waiting = [bytes];
      if (typeof message === "object") {
        yield { bytes: bytes.subarray(0, message.length), headerType: message.headerType };
        waiting = [bytes.subarray(message.length)];
        length -= message.length;
      }
      needed = typeof message === "object" ? 0 : (message ?? Infinity);
    }
  }
}
