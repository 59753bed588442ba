import type { ByteSource } from "../wire/byte_source.ts";
import { archiveIn, isPickle } from "../wire/file_bytes.ts";
import { RecordingFile } from "../wire/recording_file.ts";
import { canConvert } from "./conversion.ts";

/** Converts a recording that the browser cannot read, on the server. */
export type Convert = () => Promise<ByteSource>;

/**
 * The recording in a file, whose format is detected from its first bytes.
 *
 * If the server cannot convert files, a file of an older gpuviz is shown without conversion.
 */
export async function openRecording(file: ByteSource, convert: Convert): Promise<RecordingFile> {
  if (await isPickle(file)) {
    return RecordingFile.open(await convert());
  }
  const recording = await RecordingFile.open(await archiveIn(file));
  return recording.isClassified || !canConvert ? recording : RecordingFile.open(await convert());
}
