// The record layouts are those of PKWARE's APPNOTE.TXT 6.3.
const END_OF_DIRECTORY = 0x06054b50;
const DIRECTORY_ENTRY = 0x02014b50;
const LOCAL_ENTRY = 0x04034b50;
const END_OF_DIRECTORY_BYTES = 22;
const LONGEST_COMMENT_BYTES = 0xffff;
const STORED = 0;
const DEFLATED = 8;

export interface ZipMember {
  readonly method: number;
  readonly compressedBytes: number;
  readonly bytes: number;
  readonly localOffset: number;
}

/** The members of a ZIP archive, by name. */
export function readZipDirectory(archive: Uint8Array<ArrayBuffer>): Map<string, ZipMember> {
  const view = new DataView(archive.buffer, archive.byteOffset, archive.byteLength);
  const end = findEndOfDirectory(view);
  const count = view.getUint16(end + 10, true);
  let offset = view.getUint32(end + 16, true);
  const members = new Map<string, ZipMember>();
  for (let index = 0; index < count; index += 1) {
    if (view.getUint32(offset, true) !== DIRECTORY_ENTRY) {
      throw new Error(`The archive's directory is damaged at byte ${offset}.`);
    }
    const nameBytes = view.getUint16(offset + 28, true);
    const tailBytes = view.getUint16(offset + 30, true) + view.getUint16(offset + 32, true);
    const name = new TextDecoder().decode(archive.subarray(offset + 46, offset + 46 + nameBytes));
    members.set(name, {
      method: view.getUint16(offset + 10, true),
      compressedBytes: view.getUint32(offset + 20, true),
      bytes: view.getUint32(offset + 24, true),
      localOffset: view.getUint32(offset + 42, true),
    });
    offset += 46 + nameBytes + tailBytes;
  }
  return members;
}

function findEndOfDirectory(view: DataView): number {
  const first = view.byteLength - END_OF_DIRECTORY_BYTES;
  const last = Math.max(first - LONGEST_COMMENT_BYTES, 0);
  for (let offset = first; offset >= last; offset -= 1) {
    if (view.getUint32(offset, true) === END_OF_DIRECTORY) {
      return offset;
    }
  }
  throw new Error("The recording is not a ZIP archive: its end-of-directory record is missing.");
}

/** The inflated bytes of one member. */
export async function readZipMember(
  archive: Uint8Array<ArrayBuffer>,
  name: string,
  member: ZipMember,
): Promise<Uint8Array<ArrayBuffer>> {
  const view = new DataView(archive.buffer, archive.byteOffset, archive.byteLength);
  if (view.getUint32(member.localOffset, true) !== LOCAL_ENTRY) {
    throw new Error(`The member ${name} is damaged: its header is missing.`);
  }
  const nameBytes = view.getUint16(member.localOffset + 26, true);
  const extraBytes = view.getUint16(member.localOffset + 28, true);
  const start = member.localOffset + 30 + nameBytes + extraBytes;
  const packed = archive.subarray(start, start + member.compressedBytes);
  const bytes = await unpack(packed, name, member.method);
  if (bytes.byteLength !== member.bytes) {
    throw new Error(`The member ${name} has ${bytes.byteLength} bytes, not ${member.bytes}.`);
  }
  return bytes;
}

async function unpack(
  packed: Uint8Array<ArrayBuffer>,
  name: string,
  method: number,
): Promise<Uint8Array<ArrayBuffer>> {
  if (method === STORED) {
    return packed.slice();
  }
  if (method !== DEFLATED) {
    throw new Error(`The member ${name} is packed with method ${method}; deflate (8) is expected.`);
  }
  const inflated = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}
