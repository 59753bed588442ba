import { type ByteSource, sourceOfBase64 } from "./byte_source.ts";

const HEAD_BYTES = 1024;
const RECORDING = "gpuviz-recording";
const CLOSING = "</script>";
const PICKLE_PROTOCOL = 0x80;

/** Whether a file is a pickle, like PyTorch's memory snapshots. */
export async function isPickle(file: ByteSource): Promise<boolean> {
  const [opcode, protocol = 0] = await file.slice(0, Math.min(2, file.byteLength));
  return opcode === PICKLE_PROTOCOL && protocol >= 2;
}

/**
 * The `.gpuviz` archive in a file: the file itself, or the one embedded in a report.
 *
 * The format is detected from the first bytes.
 */
export async function archiveIn(file: ByteSource): Promise<ByteSource> {
  const head = await textOf(file, HEAD_BYTES);
  if (head.startsWith("PK")) {
    return file;
  }
  if (head.trimStart().startsWith("<")) {
    return archiveInPage(await textOf(file, file.byteLength));
  }
  throw new Error(
    "The file is neither a .gpuviz file, a gpuviz report nor a PyTorch memory snapshot.",
  );
}

async function textOf(file: ByteSource, bytes: number): Promise<string> {
  return new TextDecoder().decode(await file.slice(0, Math.min(bytes, file.byteLength)));
}

function archiveInPage(page: string): ByteSource {
  const main = scriptOf(page, RECORDING);
  if (main === undefined) {
    throw new Error("The page has no recording: it is truncated, or not a gpuviz report.");
  }
  const text = main + (scriptOf(page, `${RECORDING}-end`) ?? "");
  if (text.length % 4 !== 0 || /[^A-Za-z0-9+/=]/.test(text)) {
    throw new Error("The recording that the page embeds is damaged: it is not base64.");
  }
  return sourceOfBase64(text);
}

/** The text of the script with an id; undefined if there is none. */
function scriptOf(page: string, id: string): string | undefined {
  const opening = new RegExp(`<script\\b[^>]*\\bid="${id}"[^>]*>`).exec(page);
  if (opening === null) {
    return undefined;
  }
  const start = opening.index + opening[0].length;
  const end = page.indexOf(CLOSING, start);
  if (end < 0) {
    throw new Error("The page is truncated: the recording that it embeds does not end.");
  }
  return page.slice(start, end).trim();
}
