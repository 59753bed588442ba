import { formatBytes, formatCount, formatDuration } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import { lineKeys, paired, type Corresponding, type Pair } from "../model/correspondence.ts";
import type { DeviceContents } from "../model/device_contents.ts";
import {
  copyRows,
  kernelRows,
  synchronizationRows,
  type CopyRow,
  type GpuRow,
  type KernelRow,
  type SynchronizationRow,
} from "../model/gpu_rows.ts";
import type { Window } from "../model/grouping.ts";
import { lineRows, type LineRow } from "../model/line_rows.ts";
import type { Selected } from "../model/selected.ts";
import { shadeOfKernel } from "../model/span_kinds.ts";
import type { CallSite } from "../model/stacks.ts";
import type { ChartContext } from "./chart_context.ts";
import { dataTable, type TableColumn } from "./data_table.ts";
import { actionButton, element } from "./dom.ts";
import { copyName, TOTAL_HINT } from "./gpu_tables.ts";
import { reveal } from "./selected_panel.ts";
import { figuresOf, usedFigures } from "./source_view.ts";
import { appendCallSite, colourKey } from "./table_columns.ts";
import type { Part } from "./tables_view.ts";

type Both<Value> = readonly [before: Value, after: Value];

/** A number of a row; `ofNothing` is that of a side without the row. */
interface Amount<Row> {
  readonly title: string;
  readonly hint: string;
  readonly value: (row: Row) => number | undefined;
  readonly format: (value: number) => string;
  readonly ofNothing?: number | undefined;
}

interface Compared<Row> {
  readonly name: string;
  readonly title: string;
  readonly hint: string;
  readonly none: string;
  readonly rowsOf: (contents: DeviceContents, window: Window) => readonly Row[];
  readonly keysOf: Both<(row: Row) => string>;
  /** What a row is called; empty where its line is its name. */
  readonly nameOf: (row: Row) => string;
  readonly shortOf?: (row: Row) => string;
  readonly callSiteOf: (row: Row) => CallSite | undefined;
  readonly selectedOf: (row: Row) => Selected | undefined;
  readonly amounts: () => readonly Amount<Row>[];
  /** The rest of the custom property `--gpuviz-...` of its colour in the charts. */
  readonly colourOf?: (row: Row, chart: ChartContext) => string | undefined;
  /** A column of its own, by the name of a row. */
  readonly verdicts?: Readonly<Record<string, string>>;
}

const LINE_FIGURES = ["liveBytes", "kernelNs", "copyNs", "waitNs", "idleNs"];

/** Tables of what two recordings have in common, and of what only one has, with the changes. */
export function comparedParts(charts: Both<ChartContext>, found: Corresponding): readonly Part[] {
  const [before, after] = lineKeys(found);
  const part = <Row>(compared: Compared<Row>): Part => comparedPart(charts, compared);
  return [
    part<LineRow>({
      name: "lines",
      title: "Lines",
      hint: "What each line costs; lines correspond by function and text. A click shows the largest block.",
      none: "No line of either program did anything here.",
      rowsOf: lineRows,
      keysOf: [({ callSite }) => before(callSite.site), ({ callSite }) => after(callSite.site)],
      nameOf: () => "",
      callSiteOf: ({ callSite }) => callSite,
      selectedOf: ({ largest }) =>
        largest === undefined ? undefined : { kind: "block", block: largest },
      colourOf: ({ stack }, { grouping }) => grouping.colourOfStack(stack),
      amounts: () => {
        const used = usedFigures(charts.flatMap((chart) => chart.linesIn(undefined)));
        const figures = figuresOf(
          LINE_FIGURES.filter((name) => used.some((each) => each === name)),
        );
        return figures.map(([name, title, hint, format]) => ({
          ...{ title, hint, format },
          value: ({ sums }: LineRow) => sums[name],
        }));
      },
    }),
    part<KernelRow>({
      name: "kernels",
      title: "Kernels",
      hint: "By name; click one to show its longest launch.",
      none: "No kernels on this device.",
      rowsOf: (contents, window) => kernelRows(contents, window),
      keysOf: [({ name }) => name, ({ name }) => name],
      nameOf: ({ name }) => name,
      shortOf: ({ short }) => short,
      callSiteOf: ({ callSites }) => (callSites.length === 1 ? callSites[0] : undefined),
      selectedOf: ({ longest }) => longest,
      colourOf: ({ name }) => `kernel-${shadeOfKernel(name)}`,
      amounts: () => [
        total(TOTAL_HINT),
        count("Launches"),
        {
          title: "Median",
          hint: "Median duration of a launch",
          value: ({ medianNs }) => medianNs,
          format: formatDuration,
          ofNothing: undefined,
        },
      ],
      verdicts: found.kernels,
    }),
    part<CopyRow>({
      name: "copies",
      title: "Copies",
      hint: "By direction and kind of host memory.",
      none: "No copies on this device.",
      rowsOf: (contents, window) => copyRows(contents, window),
      keysOf: [copyName, copyName],
      nameOf: copyName,
      callSiteOf: () => undefined,
      selectedOf: ({ longest }) => longest,
      amounts: () => [
        total(TOTAL_HINT),
        {
          title: "Bytes",
          hint: "Total bytes copied",
          value: ({ bytes }) => bytes,
          format: formatBytes,
        },
        count("Copies"),
      ],
    }),
    part<SynchronizationRow>({
      name: "waits",
      title: "Waits",
      hint: "What blocked the host, by line.",
      none: "The host was never blocked.",
      rowsOf: (contents, window) => synchronizationRows(contents, window),
      keysOf: [
        ({ callSite, waitedFor, name }) => `${before(callSite.site)} ${waitedFor} ${name}`,
        ({ callSite, waitedFor, name }) => `${after(callSite.site)} ${waitedFor} ${name}`,
      ],
      nameOf: ({ waitedFor }) => waitedFor,
      callSiteOf: ({ callSite }) => callSite,
      selectedOf: ({ longest }) => longest,
      amounts: () => [total("Time in which the host was blocked"), count("Waits")],
    }),
  ];
}

function total(hint: string): Amount<GpuRow> {
  return { title: "Total", hint, value: ({ totalNs }) => totalNs, format: formatDuration };
}

function count(title: string): Amount<GpuRow> {
  const hint = `Number of ${title.toLowerCase()}`;
  return { title, hint, value: ({ count: rows }) => rows, format: formatCount };
}

function comparedPart<Row>(charts: Both<ChartContext>, compared: Compared<Row>): Part {
  const { name, title, hint, none, rowsOf, keysOf, amounts, verdicts } = compared;
  return {
    ...{ name, title, hint },
    create: (scope, parent) => {
      const columns = [
        nameColumn(charts, compared),
        ...amounts().flatMap((amount) => amountColumns(amount)),
        ...(verdicts === undefined ? [] : [verdictColumn(compared, verdicts)]),
      ];
      const show = dataTable(scope, parent, columns, {
        label: title,
        // The change of the first amount.
        sortedBy: 2,
        keyOf: ({ key }) => key,
        filter: charts[0].filter,
        none,
      });
      return (window) => {
        const { measured, window: shown } = charts[1].selection;
        const there = window && (measured.value ?? shown.range.value);
        const rows = [
          rowsOf(charts[0].contents, window),
          rowsOf(charts[1].contents, there),
        ] as const;
        show(paired(rows[0], rows[1], keysOf));
      };
    },
  };
}

/** What something is called, and its line; a click shows it where it is, after rather than before. */
function nameColumn<Row>(
  charts: Both<ChartContext>,
  { title, nameOf, shortOf = nameOf, callSiteOf, selectedOf, colourOf }: Compared<Row>,
): TableColumn<Pair<Row>> {
  const colourIn = ({ before, after }: Pair<Row>): string | undefined =>
    (after && colourOf?.(after, charts[1])) ?? (before && colourOf?.(before, charts[0]));
  const rowOf = ({ before, after }: Pair<Row>): Row => (after ?? before) as Row;
  const textOf = (row: Row): string => {
    const { site = "", source = "" } = callSiteOf(row) ?? {};
    return [nameOf(row), source, site].filter((text) => text !== "").join("\n");
  };
  return {
    title: title.replace(/ies$/, "y").replace(/s$/, ""),
    hint: "A click shows the largest or longest of it",
    value: (pair) => textOf(rowOf(pair)),
    fill: (pair, cell, scope) => {
      cell.title = textOf(rowOf(pair()));
      const place = element("div", "gpuviz-lines__line gpuviz-compared__name");
      cell.append(place);
      const row = rowOf(pair());
      const link = actionButton(scope, shortOf(row), nameOf(row), () => {
        const { before, after } = pair();
        const selected = selectedOf(rowOf({ key: "", before, after }));
        if (selected !== undefined) {
          reveal(selected, charts[after === undefined ? 0 : 1]);
        }
      });
      link.className = "gpuviz-link";
      const site = callSiteOf(row);
      if (site !== undefined) {
        const line = nameOf(row) === "" ? link : element("span", "");
        appendCallSite(line, site);
        place.append(link, " ", ...(line === link ? [] : [line]));
      } else {
        place.append(link);
      }
      appendEdit(place, pair(), callSiteOf);
      scope.follow(() => {
        place.querySelector(":scope > .gpuviz-key")?.remove();
        const colour = colourIn(pair());
        place.prepend(...(colour === undefined ? [] : [colourKey(colour)]));
      }, charts[1].grouping.categories);
      return () => undefined;
    },
  };
}

/** The text of a line before, where it is another. */
function appendEdit<Row>(
  cell: HTMLElement,
  { before, after }: Pair<Row>,
  callSiteOf: (row: Row) => CallSite | undefined,
): void {
  const was = before && callSiteOf(before)?.source.trim();
  const is = after && callSiteOf(after)?.source.trim();
  if (was !== undefined && is !== undefined && was !== is) {
    const edit = element("span", "gpuviz-table__small", " was ");
    edit.append(element("code", "gpuviz-code", was));
    cell.append(edit);
  }
}

/** What it is after, with what it was, and the change. */
function amountColumns<Row>(amount: Amount<Row>): readonly TableColumn<Pair<Row>>[] {
  const { title, hint, value, format } = amount;
  const ofNothing = "ofNothing" in amount ? amount.ofNothing : 0;
  const of = (row: Row | undefined): number | undefined =>
    row === undefined ? ofNothing : value(row);
  const text = (known: number | undefined): string =>
    known === undefined || known === 0 ? "" : format(known);
  const change = ({ before, after }: Pair<Row>): number | undefined => {
    const [was, is] = [of(before), of(after)];
    return was === undefined || is === undefined ? undefined : is - was;
  };
  return [
    {
      title,
      hint: `${hint}: after, and what it was before`,
      value: ({ after }) => of(after),
      text: ({ after }) => text(of(after)),
      small: ({ before, after }) => {
        const was = of(before);
        return was === of(after) || was === undefined || was === 0 ? "" : `was ${format(was)}`;
      },
    },
    {
      title: "Change",
      hint: `${title}: after less before; sorts by how much it is, more or less`,
      value: change,
      order: (pair) => {
        const by = change(pair);
        return by && Math.abs(by);
      },
      text: (pair) => {
        const by = change(pair) ?? 0;
        return by === 0 ? "" : `${by > 0 ? "+" : "-"}${format(Math.abs(by))}`;
      },
    },
  ];
}

function verdictColumn<Row>(
  { nameOf }: Compared<Row>,
  verdicts: Readonly<Record<string, string>>,
): TableColumn<Pair<Row>> {
  const of = ({ before, after }: Pair<Row>): string =>
    verdicts[nameOf((after ?? before) as Row)] ?? "";
  return {
    title: "Of the whole recordings",
    hint: "New, gone, launched more or less often; slower or faster if the medians differ by more than noise",
    value: of,
  };
}
