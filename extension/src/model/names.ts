import type { RecordingFile } from "../wire/recording_file.ts";

/** What a reader calls the streams and pools of a recording. */
export interface Names {
  readonly stream: (id: number) => string;
  readonly pool: (id: number) => string;
}

export async function readNames(file: RecordingFile): Promise<Names> {
  const [streamTable, poolTable] = await Promise.all([file.table("streams"), file.table("pools")]);
  const streamNames = streamTable.texts("name");
  const handles = streamTable.numbers("handle");
  const streams = new Map<number, string>();
  streamTable.numbers("id").forEach((id, row) => {
    streams.set(id, nameStream(streamNames[row] ?? "", handles[row] ?? 0));
  });
  const segmentTypes = poolTable.texts("segment_type");
  const pools = new Map<number, string>();
  poolTable.numbers("id").forEach((id, row) => {
    pools.set(id, namePool(id, segmentTypes[row] ?? ""));
  });
  return {
    stream: (id) => streams.get(id) ?? (id === 0 ? "no stream" : `stream ${id}`),
    pool: (id) => pools.get(id) ?? namePool(id, id % 2 === 1 ? "large" : "small"),
  };
}

function nameStream(name: string, handle: number): string {
  if (name !== "") {
    return name;
  }
  return handle === 0 ? "default stream" : `stream 0x${handle.toString(16)}`;
}

function namePool(id: number, segmentType: string): string {
  const number = Math.floor(id / 2);
  return number === 0 ? `default (${segmentType})` : `MemPool ${number} (${segmentType})`;
}
