import { ColumnTable } from "../wire/column_table.ts";
import { readPickle } from "../wire/pickle.ts";
import type { RecordedTables, Table } from "../wire/table.ts";
import { eventColumns } from "./torch_event_table.ts";
import { TorchHistory } from "./torch_history.ts";
import { notesOf } from "./torch_notes.ts";
import { TorchRanges } from "./torch_ranges.ts";
import { TorchSnapshot } from "./torch_snapshot.ts";
import type { TorchStacks } from "./torch_stacks.ts";
import { TorchStreams } from "./torch_streams.ts";
import { TorchTimes } from "./torch_times.ts";

/** A torch memory snapshot as a recording, with the tables that gpuviz.load gives of it. */
export class TorchRecording implements RecordedTables {
  readonly initialEvents: number;
  readonly durationNs: number;
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly #tables: ReadonlyMap<string, ColumnTable>;

  constructor(snapshot: TorchSnapshot) {
    const history = new TorchHistory(snapshot);
    const times = new TorchTimes(snapshot);
    const ranges = new TorchRanges(snapshot, times);
    const columns = eventColumns(history, times, ranges);
    const streams = new TorchStreams(columns);
    this.initialEvents = history.before.length;
    this.durationNs = times.endNs;
    const created = times.startUnixMs > 0 ? new Date(times.startUnixMs).toISOString() : "";
    this.manifest = { created, notes: [...notesOf(snapshot, history, times)] };
    const tables = [
      new ColumnTable("memory_events", { ...columns, stream: streams.ids }),
      streams.table,
      poolTable(columns.pool),
      ...stackTables(snapshot.stacks),
      ...ranges.tables(),
    ];
    this.#tables = new Map(tables.map((table) => [table.name, table]));
  }

  /** Reads the bytes of a pickle; the page can draw in between. */
  static async read(
    bytes: Uint8Array<ArrayBuffer>,
    news?: (done: number, total: number) => void,
  ): Promise<TorchRecording> {
    const root = await readPickle(bytes, news);
    return new TorchRecording(new TorchSnapshot(root, bytes.length));
  }

  rowsOf(name: string): number {
    return this.#tables.get(name)?.rows ?? 0;
  }

  tableIfAny(name: string): Promise<Table> {
    return Promise.resolve(this.#tables.get(name) ?? new ColumnTable(name));
  }

  async *parts(name: string): AsyncGenerator<Table> {
    const table = this.#tables.get(name);
    if (table !== undefined) {
      yield Promise.resolve(table);
    }
  }
}

function poolTable(pools: Float64Array<ArrayBuffer>): ColumnTable {
  const ids = Float64Array.from(new Set(pools)).sort();
  return new ColumnTable("pools", {
    id: ids,
    segment_type: Array.from(ids, (id) => (id % 2 === 1 ? "large" : "small")),
  });
}

function stackTables({ stacks, names, filenames, lines }: TorchStacks): readonly ColumnTable[] {
  return [
    new ColumnTable("frames", {
      id: Float64Array.from(lines, (_, place) => place + 1),
      name: names,
      filename: filenames,
      line: Float64Array.from(lines),
      source: lines.map(() => ""),
    }),
    new ColumnTable("stacks", {
      id: Float64Array.from(stacks, (_, place) => place + 1),
      frames: stacks,
    }),
  ];
}
