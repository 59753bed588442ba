import { nextTask } from "../base/next_task.ts";
import type { ArrowTable } from "../wire/arrow.ts";
import type { RecordingFile } from "../wire/recording_file.ts";
import type { GrowingRecording } from "./growing_recording.ts";

/** Tables that other tables refer to; they are small, and are read first. */
const NAMED_FIRST = ["frames", "stacks"] as const;
/** In the order in which they are needed: waits are shown where their calls are. */
const LARGE = [
  "memory_events",
  "host_memory_events",
  "api_calls",
  "activities",
  "launch_blocks",
  "accessed_blocks",
  "idle_gaps",
  "host_waits",
  "stream_waits",
  "peer_copies",
] as const;

/** A large table of which a part has been read. */
interface Started {
  readonly parts: AsyncIterator<ArrowTable>;
  readonly rows: number;
  /** The next part, which is unpacked while others are taken in. */
  next: Promise<IteratorResult<ArrowTable>>;
  taken: number;
}

/**
 * Reads a file into a recording, a part of each large table in turn, so that they fill alike.
 *
 * Yields after each part how much has been read, from 0 to 1; the page can draw in between.
 */
export async function* readInto(
  recording: GrowingRecording,
  file: RecordingFile,
): AsyncGenerator<number> {
  const small = recording.gpu.tableNames.filter((name) => !LARGE.some((large) => large === name));
  const tables = [...NAMED_FIRST, ...small].map((name) => file.table(name));
  for (const table of await Promise.all(tables)) {
    recording.append(table);
  }
  recording.extend(file.durationNs);
  let started: Started[] = LARGE.map((name) => {
    recording.reserve(name, file.rowsOf(name));
    const parts = file.parts(name);
    return { parts, rows: file.rowsOf(name), next: ahead(parts), taken: 0 };
  });
  recording.gpu.lacksDerived = !file.isClassified;
  recording.gpu.bounds = file.bounds;
  const total = started.reduce((sum, { rows }) => sum + rows, 0);
  let taken = 0;
  while (started.length > 0) {
    const behind = started.reduce((left, right) => (shareOf(right) < shareOf(left) ? right : left));
    const part = await behind.next;
    if (part.done === true) {
      started = started.filter((table) => table !== behind);
    } else {
      behind.next = ahead(behind.parts);
      recording.append(part.value);
      part.value.release();
      recording.settle();
      behind.taken += part.value.rows;
      taken += part.value.rows;
      yield Math.min(taken / Math.max(total, 1), 1);
      await nextTask();
    }
  }
}

function shareOf({ taken, rows }: Started): number {
  return taken / Math.max(rows, 1);
}

/** The next part, before it is needed; if it fails, whoever waits for it is told. */
function ahead(parts: AsyncIterator<ArrowTable>): Promise<IteratorResult<ArrowTable>> {
  const next = parts.next();
  next.catch(() => undefined);
  return next;
}
