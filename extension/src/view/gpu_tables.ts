import { counted } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import type { DeviceContents } from "../model/device_contents.ts";
import { threadsOf } from "../model/launch_configurations.ts";
import { shadeOfKernel } from "../model/span_kinds.ts";
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
import type { ChartContext } from "./chart_context.ts";
import { dataTable, type TableColumn } from "./data_table.ts";
import { actionButton, element } from "./dom.ts";
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
import type { ShowWindow } from "./time_window.ts";

/** Shown for a file without derived tables. */
export const OLDER_FILE =
  "This file lacks the tables that this version derives: `gpuviz convert OLD NEW` adds them.";
/** Of a total time of kernels or copies. */
export const TOTAL_HINT = "Time on the GPU, summed over concurrent work";
const TOTAL_TIME = 1;

/** The kernels of the device by name. */
export function kernelsTable(scope: Scope, parent: HTMLElement, chart: ChartContext): ShowWindow {
  const columns: TableColumn<KernelRow>[] = [
    timeColumn("Total", TOTAL_HINT, (row) => row.totalNs),
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
  return gpuTable(scope, parent, chart, columns, {
    label: "Kernels",
    title: "Kernel",
    none: "No kernels on this device.",
    name: ({ name }) => name,
    short: ({ short }) => short,
    colour: ({ name }) => `kernel-${shadeOfKernel(name)}`,
    rowsOf: kernelRows,
  });
}

/** The copies of the device by kind. */
export function copiesTable(scope: Scope, parent: HTMLElement, chart: ChartContext): ShowWindow {
  const columns: TableColumn<CopyRow>[] = [
    timeColumn("Total", TOTAL_HINT, (row) => row.totalNs),
    bytesColumn("Bytes", "Total bytes copied", (row) => row.bytes),
    countColumn("Copies", "Number of copies", (row) => row.count),
    timeColumn("Median", "Median duration of a copy", (row) => row.medianNs),
    speedColumn("Speed", "Bytes over the total time", (row) => row.bytesPerSecond),
  ];
  return gpuTable(scope, parent, chart, columns, {
    label: "Copies",
    title: "Copy",
    none: "No copies on this device.",
    name: copyName,
    rowsOf: copyRows,
  });
}

/** What blocked the host, by line. */
export function synchronizationsTable(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
): ShowWindow {
  const columns: TableColumn<SynchronizationRow>[] = [
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
  return gpuTable(scope, parent, chart, columns, {
    label: "Waits",
    title: "Waited for",
    none: chart.gpu.lacksDerived
      ? OLDER_FILE
      : chart.gpu.apiCalls.count + chart.gpu.hostWaits.count === 0
        ? "CUDA calls were not recorded, so it is unknown when the host was blocked."
        : "The host was never blocked.",
    name: ({ waitedFor }) => waitedFor,
    small: ({ name }) => name,
    keyOf: ({ callSite, waitedFor, name }) => `${callSite.site} ${waitedFor} ${name}`,
    rowsOf: synchronizationRows,
  });
}

interface TableOf<Row> {
  readonly label: string;
  /** The title of the column of names. */
  readonly title: string;
  readonly none: string;
  readonly name: (row: Row) => string;
  /** What is shown of the name; all of it where there is nothing shorter. */
  readonly short?: (row: Row) => string;
  readonly small?: (row: Row) => string;
  /** The rest of the custom property `--gpuviz-...` of its colour in the charts. */
  readonly colour?: (row: Row) => string;
  readonly keyOf?: (row: Row) => string;
  /** The rows of a window, or the parts of one of them by line. */
  readonly rowsOf: (contents: DeviceContents, window: Window, of?: Row) => readonly Row[];
}

/** A table of what has a name; a row that several lines are behind opens into one for each. */
function gpuTable<Row extends GpuRow>(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
  columns: readonly TableColumn<Row>[],
  of: TableOf<Row>,
): ShowWindow {
  const { name, rowsOf, keyOf = name } = of;
  const keyOfRow = (row: Row): string =>
    row.isPart ? `${keyOf(row)}\n${row.callSite.site}` : keyOf(row);
  const opened = new Signal<readonly string[]>([]);
  let shown: Window;
  const show = dataTable(scope, parent, [nameColumn(chart, of, opened), ...columns], {
    label: of.label,
    sortedBy: TOTAL_TIME,
    keyOf: keyOfRow,
    filter: chart.filter,
    marked: chart.marked,
    none: of.none,
    classOf: ({ isPart }) => (isPart ? "gpuviz-table__part" : ""),
    opened,
    partsOf: (row) => rowsOf(chart.contents, shown, row),
  });
  return (window) => {
    shown = window;
    show(rowsOf(chart.contents, window));
  };
}

/** A name that leads to the longest of its row in the charts, and the line behind it. */
function nameColumn<Row extends GpuRow>(
  chart: ChartContext,
  { title, name, short = name, small = () => "", colour, keyOf = name }: TableOf<Row>,
  opened: Signal<readonly string[]>,
): TableColumn<Row> {
  return {
    title,
    hint: "And the lines behind it; a click shows the longest of a row in the charts",
    value: name,
    text: (row) =>
      [name(row), small(row), ...row.callSites.flatMap(({ site, source }) => [site, source])].join(
        "\n",
      ),
    fill: (row, cell, scope) => {
      const key = keyOf(row());
      const link = showLink(scope, chart, "", name(row()), () => row().longest);
      const lines = actionButton(scope, "", "Show the lines behind it", () => {
        const { value } = opened;
        opened.value = value.includes(key) ? value.filter((each) => each !== key) : [...value, key];
      });
      lines.className = "gpuviz-link gpuviz-table__lines";
      cell.className = "gpuviz-table__name";
      if (row().isPart) {
        appendCallSite(link, row().callSite);
        cell.append(link);
        return () => undefined;
      }
      const line = element("div", "");
      cell.append(...(colour === undefined ? [] : [colourKey(colour(row()))]), link, line);
      link.textContent = short(row());
      if (small(row()) !== "") {
        link.after(element("span", "gpuviz-table__small", ` ${small(row())}`));
      }
      return () => {
        const { callSites } = row();
        const isOpen = opened.value.includes(key);
        const sites = `${isOpen} ${callSites.map(({ site }) => site).join("\n")}`;
        if (line.dataset["site"] !== sites) {
          line.dataset["site"] = sites;
          line.replaceChildren();
          if (callSites.length > 1) {
            lines.textContent = `${counted(callSites.length, "line")} ${isOpen ? "▾" : "▸"}`;
            lines.ariaExpanded = String(isOpen);
            line.append(lines);
          } else {
            callSites.forEach((only) => appendCallSite(line, only));
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

/** Each GPU has its half of a copy between GPUs that goes through the host. */
const HALF_NAMES: Readonly<Record<string, string>> = {
  peer_to_host: "to a GPU via host",
  host_to_peer: "from a GPU via host",
};

export function copyName({ copyKind, hostMemory }: CopyRow): string {
  const kind =
    copyKind === "" ? "unknown kind" : (HALF_NAMES[copyKind] ?? copyKind.replaceAll("_", " "));
  return hostMemory === "" ? kind : `${kind}, ${hostMemory}`;
}
