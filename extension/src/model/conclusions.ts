import type { ArrowTable } from "../wire/arrow.ts";
import type { RecordingFile } from "../wire/recording_file.ts";
import { sectionsIn, type Place, type Section } from "./sections.ts";

/** Something that gpuviz says about a device, as Python worded it. */
export interface Conclusion {
  readonly device: number;
  /** The list that has it. */
  readonly list: "findings" | "hazards";
  readonly number: number;
  readonly isAlarm: boolean;
  /** Whether it is above the charts, too. */
  readonly isFirst: boolean;
  /** Whether the list shows it only on a click. */
  readonly isFolded: boolean;
  readonly title: string;
  readonly saving: string;
  readonly sentences: readonly string[];
  readonly lines: readonly Line[];
  /** What shows it; undefined if there is no particular time. */
  readonly place: Place | undefined;
  /** The rows of activities that nothing orders; undefined if there is no arrow between them. */
  readonly arrow: readonly [first: number, second: number] | undefined;
}

/** A line of the program, with its share. */
interface Line {
  readonly source: string;
  readonly site: string;
  readonly shortSite: string;
  readonly amount: string;
}

export type Iteration = readonly [fromNs: number, toNs: number, peakBytes: number];

/** A sample: bytes that libraries allocated from CUDA, and the rest. */
export type OtherMemory = readonly [timeNs: number, libraries: number, rest: number];

/** What Python concluded about the devices of a recording. */
export class Conclusions {
  readonly #said: readonly Conclusion[];
  readonly #iterations: ReadonlyMap<number, readonly Iteration[]>;
  readonly #otherMemory: ReadonlyMap<number, readonly OtherMemory[]>;
  readonly #sections: ReadonlyMap<number, readonly Section[]>;

  private constructor(
    shown: ArrowTable,
    iterations: ArrowTable,
    otherMemory: ArrowTable,
    sections: ArrowTable,
  ) {
    this.#sections = sectionsIn(sections);
    this.#said = conclusionsIn(shown);
    this.#iterations = byDevice(iterations, ["start", "end", "peak_bytes"]);
    this.#otherMemory = byDevice(otherMemory, ["time", "libraries", "rest"]);
  }

  /** Those in a file; none if it lacks them. */
  static async of(file: RecordingFile): Promise<Conclusions> {
    return new Conclusions(
      await file.table("shown"),
      await file.table("iterations"),
      await file.table("other_memory"),
      await file.table("sections"),
    );
  }

  /** Whether the file has none, as a recording that is not a report. */
  get isEmpty(): boolean {
    return this.#sections.size === 0 && this.#said.length === 0;
  }

  /** The devices that there are sections about, and their titles; undefined without sections. */
  get devices(): ReadonlyMap<number, string> | undefined {
    if (this.#sections.size === 0) {
      return undefined;
    }
    const found = new Map<number, string>();
    for (const [device, sections] of this.#sections) {
      const title = sections[0]?.lines.find(({ kind }) => kind === "device");
      if (device >= 0) {
        found.set(device, title?.cells[0]?.text ?? "");
      }
    }
    return found;
  }

  /** The sections about a device and about the recording. */
  sections(device: number): readonly Section[] {
    return [...(this.#sections.get(device) ?? []), ...(this.#sections.get(-1) ?? [])];
  }

  said(device: number): readonly Conclusion[] {
    return this.#said.filter((each) => each.device === device);
  }

  iterations(device: number): readonly Iteration[] {
    return this.#iterations.get(device) ?? [];
  }

  otherMemory(device: number): readonly OtherMemory[] {
    return this.#otherMemory.get(device) ?? [];
  }
}

function conclusionsIn(table: ArrowTable): Conclusion[] {
  const number = (name: string): ArrayLike<number> => table.numbers(name);
  const [devices, numbers] = [number("device"), number("number")];
  const [alarms, firsts, folded] = [number("is_alarm"), number("is_first"), number("is_folded")];
  const [begins, ends] = [number("begin"), number("end")];
  const arrows = [number("first_activity"), number("second_activity")] as const;
  const [lists, titles] = [table.texts("list"), table.texts("title")];
  const [savings, tabs] = [table.texts("saving"), table.texts("tab")];
  const [sentences, rows] = [table.textLists("sentences"), table.textLists("rows")];
  const hasEvidence = table.has("evidence");
  const evidenceRows = hasEvidence ? table.lists("evidence") : [];
  const evidenceTables = hasEvidence ? table.texts("evidence_of") : [];
  const [sources, sites] = [table.textLists("sources"), table.textLists("sites")];
  const [shortSites, amounts] = [table.textLists("short_sites"), table.textLists("amounts")];
  return Array.from({ length: table.rows }, (_, at) => {
    const [fromNs = -1, toNs = -1] = [begins[at], ends[at]];
    const [first = -1, second = -1] = arrows.map((rows) => rows[at] ?? -1);
    const arrow = first < 0 ? undefined : ([first, second] as const);
    const list = lists[at] === "hazards" ? "hazards" : "findings";
    return {
      device: devices[at] ?? 0,
      list,
      number: numbers[at] ?? 0,
      isAlarm: alarms[at] === 1,
      isFirst: firsts[at] === 1,
      isFolded: folded[at] === 1,
      title: titles[at] ?? "",
      saving: savings[at] ?? "",
      sentences: sentences[at] ?? [],
      lines: (sites[at] ?? []).map((site, line) => ({
        source: sources[at]?.[line] ?? "",
        site,
        shortSite: shortSites[at]?.[line] ?? "",
        amount: amounts[at]?.[line] ?? "",
      })),
      place:
        toNs < 0
          ? undefined
          : {
              window: { fromNs, toNs },
              tab: tabs[at] || undefined,
              rows: rows[at] ?? [],
              evidence: { table: evidenceTables[at] ?? "", rows: evidenceRows[at] ?? [] },
              number: arrow && numbers[at],
            },
      arrow,
    };
  });
}

/** Three columns of a table, by device. */
function byDevice(
  table: ArrowTable,
  names: readonly [string, string, string],
): Map<number, (readonly [number, number, number])[]> {
  const found = new Map<number, (readonly [number, number, number])[]>();
  const [first, second, third] = names.map((name) => table.numbers(name));
  table.numbers("device").forEach((device, row) => {
    const rows = found.get(device) ?? [];
    rows.push([first?.[row] ?? 0, second?.[row] ?? 0, third?.[row] ?? 0]);
    found.set(device, rows);
  });
  return found;
}
