import type { GrowingRecording } from "../model/growing_recording.ts";
import { readInto } from "../model/reading.ts";
import type { RecordingFile } from "../wire/recording_file.ts";

/** While the recording is read, what came is shown at most this often. */
const SHOW_EVERY_MS = 300;
/** Of the time that reading takes, at most about one part in so many goes into showing. */
const REST = 6;

/**
 * Reads a file into a recording, and calls `show` now and then with the share that has come.
 *
 * `show` draws it, so that what that takes is known.
 */
export async function readShowing(
  file: RecordingFile,
  recording: GrowingRecording,
  show: (share: number) => void,
): Promise<void> {
  let restUntilMs = 0;
  for await (const share of readInto(recording, file)) {
    const begin = performance.now();
    if (begin >= restUntilMs) {
      show(share);
      const end = performance.now();
      restUntilMs = end + Math.max(REST * (end - begin), SHOW_EVERY_MS);
    }
  }
}
