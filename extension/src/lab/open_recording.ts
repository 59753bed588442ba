import type { ByteSource } from "../wire/byte_source.ts";
import { archiveIn, isPickle } from "../wire/file_bytes.ts";
import { RecordingFile } from "../wire/recording_file.ts";
import { canConvert } from "./conversion.ts";

/** Lets the server convert a recording that the browser cannot read. */
export type Convert = () => Promise<ByteSource>;

/**
 * The recording in a file; what it is shows in its first bytes, whatever its name is.
 *
 * A file that an older gpuviz wrote is shown as it is where the server converts nothing.
 */
export async function openRecording(file: ByteSource, convert: Convert): Promise<RecordingFile> {
  if (await isPickle(file)) {
    return RecordingFile.open(await convert());
  }
  const recording = await RecordingFile.open(await archiveIn(file));
  return recording.isClassified || !canConvert ? recording : RecordingFile.open(await convert());
}
