import { counted } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import type { DeviceContents } from "../model/device_contents.ts";
import { shortKernelName } from "../model/kernel_name.ts";
import { threadsOf } from "../model/launch_configurations.ts";
import type { Selected } from "../model/selected.ts";
import { shadeOfKernel } from "../model/span_kinds.ts";
import type { CallSite } from "../model/stacks.ts";
import {
  copyRows,
  kernelRows,
  synchronizationRows,
  type CopyRow,
  type KernelRow,
  type RowsUntilNow,
  type SynchronizationRow,
  type Window,
} from "../model/gpu_rows.ts";
import type { ChartContext } from "./chart_context.ts";
import { dataTable, type TableColumn } from "./data_table.ts";
import { element } from "./dom.ts";
import {
  appendCallSite,
  bytesColumn,
  colourKey,
  countColumn,
  shareColumn,
  showLink,
  speedColumn,
  timeColumn,
} from "./table_columns.ts";
import type { ShowWindow } from "./tables_view.ts";

/** Shown for a file without derived tables. */
const OLDER_FILE =
  "This file was written by an older gpuviz: complete it with `gpuviz convert OLD NEW`.";
const TOTAL_TIME = 1;
const MOST_LINES = 4;

/** The kernels of the device by name. */
export function kernelsTable(scope: Scope, parent: HTMLElement, chart: ChartContext): ShowWindow {
  const columns: TableColumn<KernelRow>[] = [
    nameColumn("Kernel", (row) => row.name, chart, {
      short: (row) => shortKernelName(row.name),
      colour: (row) => `kernel-${shadeOfKernel(row.name)}`,
    }),
    timeColumn("Total", "Time on the GPU, summed over concurrent kernels", (row) => row.totalNs),
    shareColumn("Share of kernels", "Of the summed time of all kernels here", (row) => row.share),
    countColumn("Launches", "Number of launches", (row) => row.count),
    timeColumn("Median", "Median duration of a launch", (row) => row.medianNs),
    timeColumn("Shortest", "The shortest launch", (row) => row.minNs),
    timeColumn("Longest", "The longest launch", (row) => row.maxNs),
    timeColumn(
      "Delay",
      "Median time from the return of the launch call to the start of the kernel",
      (row) => row.launchDelayNs,
    ),
    shapeColumn(),
  ];
  const show = dataTable(scope, parent, columns, {
    label: "Kernels",
    sortedBy: TOTAL_TIME,
    keyOf: ({ name }) => name,
    filter: chart.filter,
    none: "No kernels on this device.",
  });
  return following(show, chart, kernelRows);
}

/** The copies of the device by kind. */
export function copiesTable(scope: Scope, parent: HTMLElement, chart: ChartContext): ShowWindow {
  const columns: TableColumn<CopyRow>[] = [
    nameColumn("Copy", copyName, chart),
    timeColumn("Total", "Time on the GPU, summed over concurrent copies", (row) => row.totalNs),
    bytesColumn("Bytes", "Total bytes copied", (row) => row.bytes),
    countColumn("Copies", "Number of copies", (row) => row.count),
    timeColumn("Median", "Median duration of a copy", (row) => row.medianNs),
    speedColumn("Speed", "Bytes over the total time", (row) => row.bytesPerSecond),
  ];
  const show = dataTable(scope, parent, columns, {
    label: "Copies",
    sortedBy: TOTAL_TIME,
    keyOf: copyName,
    filter: chart.filter,
    none: "No copies on this device.",
  });
  return following(show, chart, copyRows);
}

/** What blocked the host, by line. */
export function synchronizationsTable(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
): ShowWindow {
  const columns: TableColumn<SynchronizationRow>[] = [
    nameColumn("Waited for", waitName, chart, { small: ({ name }) => name }),
    timeColumn("Total", "Time in which the host was blocked", (row) => row.totalNs),
    timeColumn(
      "Waiting for earlier work",
      "The part of the total before the copy began on the GPU; for other waits all of it",
      (row) => row.waitingNs,
    ),
    timeColumn(
      "Transfer",
      "The part of the total from the begin of the copy on the GPU; 0 for other waits",
      (row) => row.transferNs,
    ),
    countColumn("Count", "Number of waits", (row) => row.count),
    timeColumn("Median", "Median time in which the host was blocked", (row) => row.medianNs),
    timeColumn("Longest", "The longest time", (row) => row.maxNs),
  ];
  const show = dataTable(scope, parent, columns, {
    label: "Waits",
    sortedBy: TOTAL_TIME,
    keyOf: ({ callSite, kind, name }) => `${callSite.site} ${kind} ${name}`,
    filter: chart.filter,
    none: chart.gpu.lacksDerived
      ? OLDER_FILE
      : chart.gpu.apiCalls.count + chart.gpu.synchronizations.count === 0
        ? "CUDA calls were not recorded, so it is unknown when the host was blocked."
        : "The host was never blocked.",
  });
  return following(show, chart, synchronizationRows);
}

/** Shows the rows of a window; they are summed up anew only where it is another one. */
function following<Row>(
  show: (rows: readonly Row[]) => void,
  chart: ChartContext,
  rowsOf: (contents: DeviceContents, window: Window) => RowsUntilNow<Row>,
): ShowWindow {
  let shown: readonly [contents: DeviceContents, window: Window] | undefined;
  let rows: RowsUntilNow<Row> = () => [];
  return (window) => {
    const { contents } = chart;
    if (shown?.[0] !== contents || shown[1] !== window) {
      shown = [contents, window];
      rows = rowsOf(contents, window);
    }
    show(rows());
  };
}

interface Naming<Row> {
  /** What is shown of the name; all of it where there is nothing shorter. */
  readonly short?: (row: Row) => string;
  readonly small?: (row: Row) => string;
  /** The rest of the custom property `--gpuviz-...` of its colour in the charts. */
  readonly colour?: (row: Row) => string;
}

/** A name that leads to the longest of its row in the charts, and the line behind it. */
function nameColumn<
  Row extends { readonly callSites: readonly CallSite[]; readonly longest: Selected },
>(
  title: string,
  name: (row: Row) => string,
  chart: ChartContext,
  { short = name, small = () => "", colour }: Naming<Row> = {},
): TableColumn<Row> {
  return {
    title,
    hint: "And the lines behind it, the most frequent first; a click shows the longest of a row in the charts",
    value: name,
    text: (row) =>
      [name(row), small(row), ...row.callSites.flatMap(({ site, source }) => [site, source])].join(
        "\n",
      ),
    fill: (row, cell, scope) => {
      cell.className = "gpuviz-table__name";
      cell.append(...(colour === undefined ? [] : [colourKey(colour(row()))]));
      cell.append(showLink(scope, chart, short(row()), name(row()), () => row().longest));
      if (small(row()) !== "") {
        cell.append(element("span", "gpuviz-table__small", ` ${small(row())}`));
      }
      const line = element("div", "");
      cell.append(line);
      return () => {
        const { callSites } = row();
        const sites = callSites.map(({ site }) => site).join("\n");
        if (line.dataset["site"] !== sites) {
          line.dataset["site"] = sites;
          line.replaceChildren(
            ...callSites.slice(0, MOST_LINES).map((each) => {
              const one = element("div", "");
              appendCallSite(one, each);
              return one;
            }),
          );
          if (callSites.length > MOST_LINES) {
            const more = `and ${counted(callSites.length - MOST_LINES, "more line")}`;
            line.append(element("div", "gpuviz-table__small", more));
            line.title = sites;
          }
        }
      };
    },
  };
}

function shapeColumn(): TableColumn<KernelRow> {
  const threads = ({ launch }: KernelRow): number | undefined => launch && threadsOf(launch);
  return {
    title: "Grid × block",
    hint: "Of the most frequent launch; sorts by the number of threads",
    value: threads,
    text: ({ launch }) =>
      launch === undefined ? "unknown" : `${shape(launch.grid)} × ${shape(launch.block)}`,
  };
}

function shape([x, y, z]: readonly [number, number, number]): string {
  return z > 1 ? `(${x}, ${y}, ${z})` : y > 1 ? `(${x}, ${y})` : String(x);
}

function copyName({ copyKind, hostMemory }: CopyRow): string {
  const kind = copyKind === "" ? "unknown kind" : copyKind.replaceAll("_", " ");
  return hostMemory === "" ? kind : `${kind}, ${hostMemory}`;
}

const WAIT_NAMES: Readonly<Record<string, string>> = {
  event_synchronize: "an event",
  stream_synchronize: "a stream",
  context_synchronize: "the device",
  memcpy: "a copy",
  pageable_memcpy: "a copy of pageable memory",
};

function waitName({ kind }: SynchronizationRow): string {
  return WAIT_NAMES[kind] ?? kind;
}
