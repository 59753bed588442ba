import { type Bytes, type ByteSource, piecesOf } from "./byte_source.ts";

// Record layouts from PKWARE's APPNOTE.TXT 6.3.
const END_OF_DIRECTORY = 0x06054b50;
const DIRECTORY_ENTRY = 0x02014b50;
const LOCAL_ENTRY = 0x04034b50;
const LOCAL_ENTRY_BYTES = 30;
const END_OF_DIRECTORY_BYTES = 22;
// With the comment of an archive, which is seldom longer than that of ours.
const USUAL_TAIL_BYTES = 1 << 8;
const LONGEST_TAIL_BYTES = END_OF_DIRECTORY_BYTES + 0xffff;
/** Number of bytes inflated at once. */
const PIECE_BYTES = 1 << 18;
const STORED = 0;
const DEFLATED = 8;

export interface ZipMember {
  readonly name: string;
  readonly method: number;
  readonly compressedBytes: number;
  readonly bytes: number;
  readonly localOffset: number;
}

/** The members of a ZIP archive, by name. */
export async function readZipDirectory(source: ByteSource): Promise<Map<string, ZipMember>> {
  const [tail, end, endsAt] = await tailOf(source);
  const count = tail.getUint16(end + 10, true);
  const from = tail.getUint32(end + 16, true);
  const directory = await source.slice(from, endsAt);
  const view = viewOf(directory);
  const members = new Map<string, ZipMember>();
  let offset = 0;
  for (let index = 0; index < count; index += 1) {
    if (offset + 46 > view.byteLength || view.getUint32(offset, true) !== DIRECTORY_ENTRY) {
      throw new Error(`The archive's directory is damaged at byte ${from + offset}.`);
    }
    const nameBytes = view.getUint16(offset + 28, true);
    const tailBytes = view.getUint16(offset + 30, true) + view.getUint16(offset + 32, true);
    const name = new TextDecoder().decode(directory.subarray(offset + 46, offset + 46 + nameBytes));
    members.set(name, {
      name,
      method: view.getUint16(offset + 10, true),
      compressedBytes: view.getUint32(offset + 20, true),
      bytes: view.getUint32(offset + 24, true),
      localOffset: view.getUint32(offset + 42, true),
    });
    offset += 46 + nameBytes + tailBytes;
  }
  return members;
}

function viewOf(bytes: Bytes): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The last bytes of an archive, and where its end-of-directory record is in them and in it. */
async function tailOf(source: ByteSource): Promise<[tail: DataView, end: number, endsAt: number]> {
  for (const bytes of [USUAL_TAIL_BYTES, LONGEST_TAIL_BYTES]) {
    const from = Math.max(source.byteLength - bytes, 0);
    const tail = viewOf(await source.slice(from, source.byteLength));
    for (let end = tail.byteLength - END_OF_DIRECTORY_BYTES; end >= 0; end -= 1) {
      if (tail.getUint32(end, true) === END_OF_DIRECTORY) {
        return [tail, end, from + end];
      }
    }
  }
  throw new Error("The recording is damaged or truncated: the end of its ZIP archive is missing.");
}

/** The inflated bytes of one member. */
export async function readZipMember(source: ByteSource, member: ZipMember): Promise<Bytes> {
  const bytes = new Uint8Array(member.bytes);
  let length = 0;
  for await (const piece of readZipPieces(source, member)) {
    bytes.set(piece, length);
    length += piece.byteLength;
  }
  return bytes;
}

/** The inflated bytes of one member, in pieces. */
export async function* readZipPieces(source: ByteSource, member: ZipMember): AsyncGenerator<Bytes> {
  const stream = unpacked(await packedPieces(source, member), member);
  let length = 0;
  try {
    for await (const piece of piecesOf(stream)) {
      length += piece.byteLength;
      if (length > member.bytes) {
        break;
      }
      yield piece;
    }
  } catch (error) {
    throw new Error(`${member.name} cannot be read: ${String(error)}`, { cause: error });
  }
  if (length !== member.bytes) {
    throw new Error(`${member.name} is damaged: it has ${length} bytes, not ${member.bytes}.`);
  }
}

/** The bytes of a deflated stream without a header. */
export async function inflated(packed: Bytes): Promise<Bytes> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function packedPieces(
  source: ByteSource,
  { name, localOffset, compressedBytes }: ZipMember,
): Promise<ReadableStream<Bytes>> {
  const header = viewOf(await source.slice(localOffset, localOffset + LOCAL_ENTRY_BYTES));
  if (header.byteLength < LOCAL_ENTRY_BYTES || header.getUint32(0, true) !== LOCAL_ENTRY) {
    throw new Error(`The member ${name} is damaged: its header is missing.`);
  }
  const namesBytes = header.getUint16(26, true) + header.getUint16(28, true);
  let from = localOffset + LOCAL_ENTRY_BYTES + namesBytes;
  const end = from + compressedBytes;
  return new ReadableStream({
    async pull(controller) {
      const to = Math.min(from + PIECE_BYTES, end);
      if (from < to) {
        controller.enqueue(await source.slice(from, to));
        source.forget?.(from, to);
        from = to;
      } else {
        controller.close();
      }
    },
  });
}

function unpacked(
  packed: ReadableStream<Bytes>,
  { name, method }: ZipMember,
): ReadableStream<Bytes> {
  if (method !== STORED && method !== DEFLATED) {
    throw new Error(`The member ${name} is packed with method ${method}; deflate (8) is expected.`);
  }
  return method === STORED ? packed : packed.pipeThrough(new DecompressionStream("deflate-raw"));
}
