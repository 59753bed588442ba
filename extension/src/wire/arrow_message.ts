import type { Bytes } from "./byte_source.ts";
import { FlatTable } from "./flat_table.ts";

// The layouts of Arrow's Message.fbs and Schema.fbs: fields by their positions in a table.
export const MESSAGE = { headerType: 1, header: 2, bodyLength: 3 } as const;
export const SCHEMA = { fields: 1 } as const;
export const FIELD = { name: 0, typeKind: 2, type: 3, dictionary: 4, children: 5 } as const;
export const INTEGER = { bits: 0, isSigned: 1 } as const;
export const FLOATING_POINT = { precision: 0 } as const;
export const ENCODING = { id: 0, indices: 1 } as const;
export const RECORD_BATCH = { nodes: 1, buffers: 2 } as const;
export const DICTIONARY_BATCH = { id: 0, data: 1, isDelta: 2 } as const;

export const HeaderType = { schema: 1, dictionaryBatch: 2, recordBatch: 3 } as const;

const CONTINUES = 0xffffffff;
const PREFIX_BYTES = 8;

/** A message of an Arrow stream. */
export interface ArrowMessage {
  readonly headerType: number;
  readonly header: FlatTable | undefined;
  readonly body: Bytes;
  /** The length of the message with its body, in bytes. */
  readonly length: number;
}

/**
 * The first message of a stream; undefined after the last one.
 *
 * If it is incomplete, the number of bytes that are needed for it, or at first for its metadata.
 */
export function firstMessage(bytes: Bytes): ArrowMessage | number | undefined {
  if (bytes.byteLength < PREFIX_BYTES) {
    return PREFIX_BYTES;
  }
  const view = viewOf(bytes);
  if (view.getUint32(0, true) !== CONTINUES) {
    throw new Error("The recording has a table that is no Arrow stream.");
  }
  const bodyFrom = PREFIX_BYTES + view.getUint32(4, true);
  if (bodyFrom === PREFIX_BYTES) {
    return undefined;
  }
  if (bytes.byteLength < bodyFrom) {
    return bodyFrom;
  }
  const message = new FlatTable(viewOf(bytes.subarray(PREFIX_BYTES)));
  const length = bodyFrom + message.long(MESSAGE.bodyLength);
  return bytes.byteLength < length
    ? length
    : {
        headerType: message.byte(MESSAGE.headerType),
        header: message.table(MESSAGE.header),
        body: bytes.subarray(bodyFrom, length),
        length,
      };
}

function viewOf({ buffer, byteOffset, byteLength }: Bytes): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
