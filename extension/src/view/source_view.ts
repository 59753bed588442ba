import { formatBytes, formatCount, formatDuration } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import { sumsByLine, type LineRow } from "../model/line_rows.ts";
import type { Sums } from "../model/stack_sums.ts";
import { shortFilename, type Frame } from "../model/stacks.ts";
import type { ChartContext } from "./chart_context.ts";
import { dataTable, type TableColumn } from "./data_table.ts";
import { element } from "./dom.ts";

type Figure = readonly [
  name: keyof Sums,
  title: string,
  hint: string,
  format: (value: number) => string,
];

const FIGURES: readonly Figure[] = [
  ["liveBytes", "At the peak", "Bytes allocated at the peak", formatBytes],
  ["totalBytes", "Allocated", "Bytes allocated in all, as rounded", formatBytes],
  ["totalCount", "Allocations", "Number of allocations", formatCount],
  ["kernelNs", "Kernel time", "Time of its kernels and graphs on the GPU", formatDuration],
  ["kernelCount", "Launches", "Number of its kernels and graphs", formatCount],
  ["copyNs", "Copies", "Time of its copies on the GPU", formatDuration],
  ["copyBytes", "Copied", "Bytes of its copies", formatBytes],
  ["waitNs", "Host waits", "Time in which it blocked the host", formatDuration],
  [
    "idleNs",
    "Idle",
    "Idle time of the device while it ran, or that its work ended",
    formatDuration,
  ],
];

/** The columns of what lines cost; empty where that is nothing, unknown in an older file. */
export function figureColumns<Row extends { readonly sums: Sums }>(
  { gpu }: ChartContext,
  figures = FIGURES,
): TableColumn<Row>[] {
  return figures.map(([name, title, hint, format]) => {
    const isKnown = !gpu.lacksDerived || (name !== "waitNs" && name !== "idleNs");
    return {
      title,
      hint,
      hasBar: true,
      value: ({ sums }) => (isKnown ? sums[name] : undefined),
      text: ({ sums }) => (!isKnown ? "unknown" : sums[name] === 0 ? "" : format(sums[name])),
    };
  });
}

/** The names of the figures that any row has, in their order. */
export function usedFigures(rows: readonly { readonly sums: Sums }[]): readonly string[] {
  return FIGURES.map(([name]) => name).filter((name) => rows.some(({ sums }) => sums[name] > 0));
}

/** The figures of these names. */
export function figuresOf(names: readonly string[]): readonly Figure[] {
  return FIGURES.filter(([name]) => names.includes(name));
}

interface SourceLine {
  readonly line: number;
  readonly text: string;
  readonly sums: Sums;
}

const SHORT: readonly string[] = ["liveBytes", "kernelNs", "waitNs"];
/** Beside the text of a whole file there is no room for counts, which the table of lines has. */
const LONG: readonly string[] = [...SHORT, "totalBytes", "copyNs", "idleNs"];

/**
 * The source around a line, with what each line costs to the left of it.
 *
 * Shows all that the recording has of the file, or only so many lines `around` it with the main
 * figures. Returns a function that takes the lines' figures.
 */
export function sourceView(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
  { filename, line }: Frame,
  around = Infinity,
): (rows: readonly LineRow[]) => void {
  const isWhole = around === Infinity;
  const shown = new Signal("");
  const place = element("div", "gpuviz-source");
  scope.append(parent, place);
  let show: (lines: readonly SourceLine[]) => void = () => undefined;
  scope.follow((table) => {
    const used = figuresOf(shown.value.split(" "));
    show = sourceTable(table, place, chart, used, line, isWhole ? chart.filter : undefined);
  }, shown);
  const texts = [...chart.stacks.sourceOf(filename)].filter(
    ([each]) => Math.abs(each - line) <= around,
  );
  const indents = texts.flatMap(([, text]) => (text.trim() === "" ? [] : [text.search(/\S/)]));
  const indent = indents.reduce((least, each) => Math.min(least, each), Infinity);
  return (rows) => {
    const sums = sumsByLine(rows, filename);
    const lines = texts.map(([each, text]) => ({
      line: each,
      text: text.slice(indent),
      sums: sums(each),
    }));
    shown.value = usedFigures(lines)
      .filter((name) => (isWhole ? LONG : SHORT).includes(name))
      .join(" ");
    show(lines);
  };
}

function sourceTable(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
  figures: readonly Figure[],
  current: number,
  filter?: Signal<string>,
): (lines: readonly SourceLine[]) => void {
  const columns: TableColumn<SourceLine>[] = [
    { title: "Line", hint: "The number of the line in its file", value: ({ line }) => line },
    ...figureColumns<SourceLine>(chart, figures),
    {
      title: "Source",
      hint: "The text of the line",
      value: ({ text }) => text,
      fill: (row, cell) => {
        cell.append(element("code", "gpuviz-source__text", row().text));
        return () => undefined;
      },
    },
  ];
  return dataTable(scope, parent, columns, {
    label: "Source",
    sortedBy: 0,
    isAscending: true,
    firstRows: Infinity,
    keyOf: ({ line }) => String(line),
    ...(filter && { filter }),
    classOf: ({ line }) => (line === current ? "gpuviz-source__current" : ""),
    none: "The recording has no source text of this file.",
  });
}
