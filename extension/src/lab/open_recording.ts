import { TorchRecording } from "../formats/torch_recording.ts";
import type { ByteSource } from "../wire/byte_source.ts";
import { archiveIn } from "../wire/file_bytes.ts";
import { isPickle } from "../wire/pickle.ts";
import { RecordingFile } from "../wire/recording_file.ts";
import type { RecordedTables } from "../wire/table.ts";

/**
 * The tables of a file; what it is shows in its first bytes, whatever its name is.
 *
 * `news` gets the share of it that was read, where it must be read whole.
 */
export async function openRecording(
  source: ByteSource,
  news: (share: number) => void,
): Promise<RecordedTables> {
  const start = await source.slice(0, Math.min(1, source.byteLength));
  if (isPickle(start)) {
    return TorchRecording.read(await source.slice(0, source.byteLength), (done, total) => {
      news(done / total);
    });
  }
  return RecordingFile.open(await archiveIn(source));
}
