import { decodeBase64 } from "./base64.ts";

const OPENING = /<script\b[^>]*\bid="gpuviz-recording"[^>]*>/;
const CLOSING = "</script>";

/**
 * The `.gpuviz` archive that a file is, or that a report embeds.
 *
 * What a file is shows in its first bytes, whatever its name is.
 */
export function archiveIn(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (startsWith(bytes, "PK")) {
    return bytes;
  }
  const start = new TextDecoder()
    .decode(bytes.subarray(0, 1024))
    .replace(/^\uFEFF/, "")
    .trimStart();
  if (start.startsWith("<")) {
    return archiveInPage(new TextDecoder().decode(bytes));
  }
  throw new Error("It is neither a .gpuviz file nor a report of gpuviz.");
}

function archiveInPage(page: string): Uint8Array<ArrayBuffer> {
  const opening = OPENING.exec(page);
  if (opening === null) {
    throw new Error(
      'The page embeds no recording: it has no script with the id "gpuviz-recording".',
    );
  }
  const start = opening.index + opening[0].length;
  const end = page.indexOf(CLOSING, start);
  if (end < 0) {
    throw new Error("The page is truncated: the recording that it embeds does not end.");
  }
  try {
    return decodeBase64(page.slice(start, end));
  } catch {
    throw new Error("The recording that the page embeds is damaged: it is not base64.");
  }
}

function startsWith(bytes: Uint8Array, text: string): boolean {
  return [...text].every((letter, index) => bytes[index] === letter.charCodeAt(0));
}
