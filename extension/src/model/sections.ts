import type { ArrowTable } from "../wire/arrow.ts";
import type { Evidence } from "./evidence.ts";

/** A line of a section, as Python worded it: a paragraph, the headings of a table, a row, ... */
export interface Line {
  readonly kind: string;
  /** What a table is about. */
  readonly label: string;
  readonly cells: readonly Cell[];
  /** What it leads to; undefined if nothing. */
  readonly place: Place | undefined;
  readonly bar: Bar | undefined;
}

/** A text, a line of code and a remark, one after the other. */
export interface Cell {
  readonly text: string;
  /** By which a table is sorted; undefined if it has none. */
  readonly value: number | undefined;
  readonly code: string;
  readonly remark: string;
  readonly hover: string;
}

/** Shares of the longest bar, and who is responsible for the added one. */
export interface Bar {
  readonly before: number;
  readonly added: number;
  readonly responsible: string;
}

/** A place of a page: a window of time, a table with some of its rows, an item of a list. */
export interface Place {
  readonly window?: { readonly fromNs: number; readonly toNs: number } | undefined;
  readonly tab?: string | undefined;
  readonly rows?: readonly string[];
  readonly evidence?: Evidence;
  readonly number?: number | undefined;
}

/** A section of a page; what is above the charts has no name. */
export interface Section {
  readonly name: string;
  readonly title: string;
  readonly lines: readonly Line[];
}

/** The sections of each device in a table, in order; those of the whole recording are of -1. */
export function sectionsIn(table: ArrowTable): ReadonlyMap<number, readonly Section[]> {
  const names = table.texts("section");
  const titles = table.texts("title");
  const lines = linesIn(table);
  const found = new Map<number, (Section & { readonly lines: Line[] })[]>();
  table.numbers("device").forEach((device, row) => {
    const ofDevice = found.get(device) ?? [];
    found.set(device, ofDevice);
    const [name = "", title = "", line] = [names[row], titles[row], lines[row]];
    if (ofDevice.at(-1)?.name !== name) {
      ofDevice.push({ name, title, lines: [] });
    }
    ofDevice.at(-1)?.lines.push(...(line === undefined ? [] : [line]));
  });
  return found;
}

function linesIn(table: ArrowTable): Line[] {
  const [kinds, labels, tabs] = [table.texts("kind"), table.texts("label"), table.texts("tab")];
  const [texts, values] = [table.textLists("texts"), table.lists("values")];
  const [codes, remarks] = [table.textLists("codes"), table.textLists("places")];
  const hovers = table.textLists("hovers");
  const [begins, ends] = [table.numbers("begin"), table.numbers("end")];
  const [before, added] = [table.numbers("bar_before"), table.numbers("bar_added")];
  const responsible = table.texts("responsible");
  return kinds.map((kind, row) => {
    const [fromNs = -1, toNs = -1, tab = ""] = [begins[row], ends[row], tabs[row]];
    const window = toNs < 0 ? undefined : { fromNs, toNs };
    const cells = (texts[row] ?? []).map((text, at) => {
      const value = values[row]?.[at] ?? NaN;
      return {
        text,
        value: Number.isNaN(value) ? undefined : value,
        code: codes[row]?.[at] ?? "",
        remark: remarks[row]?.[at] ?? "",
        hover: hovers[row]?.[at] ?? "",
      };
    });
    return {
      kind,
      label: labels[row] ?? "",
      cells,
      place: window === undefined && tab === "" ? undefined : { window, tab: tab || undefined },
      bar: responsible[row]
        ? { before: before[row] ?? 0, added: added[row] ?? 0, responsible: responsible[row] }
        : undefined,
    };
  });
}
