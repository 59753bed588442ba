import { formatBytes, formatExactBytes, formatShare, formatTime } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import {
  fragmentationAfter,
  sizeClasses,
  type Fragmentation,
  type PoolFragmentation,
  type SizeClass,
} from "../model/fragmentation.ts";
import type { ChartContext } from "./chart_context.ts";
import { dataTable, type TableColumn } from "./data_table.ts";
import { element, withCode } from "./dom.ts";
import { freeView } from "./free_view.ts";
import { OLDER_FILE } from "./gpu_tables.ts";
import { bytesColumn, countColumn, shareColumn } from "./table_columns.ts";
import type { ShowWindow } from "./time_window.ts";
import { once } from "./track.ts";

const PARTS = [
  ["requested", "requested", "Requested bytes in allocated blocks"],
  ["rounding", "rounding", "Added by rounding and unsplit remainders"],
  ["pendingFree", "pending free", "Freed, but possibly still in use by a stream"],
  ["inactiveSplit", "free, in partly used segments", "Free, but cannot be released to the device"],
  ["cachedWhole", "free, releasable", "Released by empty_cache()"],
] as const;

const UNKNOWN = "Unknown: this allocator does not expose its segments.";

/** Where reserved memory goes that is not in use: over time, and at the moment shown. */
export function fragmentationView(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
): ShowWindow {
  const unknown = element("p", "gpuviz-fragmentation__summary", UNKNOWN);
  const root = element("div", "");
  scope.append(parent, unknown, root);
  const hasSegments = (): boolean => chart.timeline.knowsSegments;
  let show = (): void => undefined;
  once(scope, chart, hasSegments, root, () => {
    unknown.hidden = true;
    show = showFragmentation(scope, root, chart);
  });
  return () => show();
}

/** Shows it of an allocator whose segments are known; returns what shows the latest. */
function showFragmentation(scope: Scope, parent: HTMLElement, chart: ChartContext): () => void {
  if (chart.gpu.lacksDerived) {
    const older = element("p", "gpuviz-section__hint");
    older.append(...withCode(OLDER_FILE));
    scope.append(parent, older);
  } else {
    freeView(scope, parent, chart);
  }
  const place = element("div", "gpuviz-fragmentation");
  scope.append(parent, place);
  const show = (shown: Scope): void => {
    const row = chart.selection.momentRow.value;
    const found = fragmentationAfter(chart.timeline, row);
    const time = formatTime(chart.timeline.events.timeNs[row] ?? 0, chart.selection.resolutionNs);
    place.replaceChildren(
      element("p", "gpuviz-fragmentation__summary", summaryOf(found, time)),
      partsBar(found),
      partsList(found),
    );
    dataTable(shown, place, poolColumns(chart), {
      label: "Fragmentation by pool",
      sortedBy: 1,
      keyOf: ({ pool, stream }) => `${pool} ${stream}`,
    })(found.pools);
    if (found.freeBlocks.length > 0) {
      place.append(element("h4", "gpuviz-subtitle", `Sizes of the free blocks at ${time}`));
      const classes = sizeClasses(found.freeBlocks);
      const most = classes.reduce((high, { bytes }) => Math.max(high, bytes), 1);
      dataTable(shown, place, sizeColumns(most, found.free), {
        label: "Free blocks by size",
        sortedBy: 0,
        keyOf: ({ fromBytes }) => String(fromBytes),
      })(classes);
    }
  };
  return scope.follow(show, chart.selection.momentRow);
}

function summaryOf(found: Fragmentation, time: string): string {
  const outside = formatShare(found.external);
  return (
    `At ${time}: ${formatBytes(found.free)} of ${formatBytes(found.reserved)} reserved are free. ` +
    `The largest free block has ${formatBytes(found.largestFree)}; ${outside} of the free bytes are ` +
    `elsewhere (external fragmentation). ${formatShare(found.internal)} of the allocated bytes are ` +
    `rounding (internal). ${formatShare(found.utilization)} of reserved memory is used.`
  );
}

/** The parts of the reserved memory, side by side. */
function partsBar(found: Fragmentation): HTMLElement {
  const bar = element("div", "gpuviz-parts");
  bar.setAttribute("aria-hidden", "true");
  for (const [name] of PARTS) {
    const part = element("div", `gpuviz-parts__part gpuviz-parts__part--${name}`);
    part.style.width = `${(100 * found[name]) / Math.max(found.reserved, 1)}%`;
    bar.append(part);
  }
  return bar;
}

function partsList(found: Fragmentation): HTMLElement {
  const list = element("dl", "gpuviz-parts__list");
  for (const [name, title, hint] of PARTS) {
    const entry = element("div", "");
    entry.title = hint;
    const term = element("dt", "");
    term.append(element("span", `gpuviz-key gpuviz-parts__part--${name}`), title);
    const value = element("dd", "", formatExactBytes(found[name]));
    value.dataset["part"] = name;
    value.dataset["value"] = String(found[name]);
    entry.append(term, value);
    list.append(entry);
  }
  return list;
}

function poolColumns({ names }: ChartContext): TableColumn<PoolFragmentation>[] {
  return [
    {
      title: "Pool",
      hint: "The pool and the stream that its segments belong to",
      value: ({ pool }) => pool,
      text: ({ pool }) => names.pool(pool),
      small: ({ stream }) => names.stream(stream),
    },
    bytesColumn("Reserved", "Bytes of its segments", ({ reserved }) => reserved),
    bytesColumn("Free", "Bytes of its free blocks", ({ free }) => free),
    bytesColumn("Largest free", "Its largest free block", ({ largestFree }) => largestFree),
    shareColumn("Outside the largest", "External fragmentation", ({ external }) => external),
  ];
}

function sizeColumns(most: number, free: number): TableColumn<SizeClass>[] {
  return [
    {
      title: "Size",
      hint: "From a power of two up to the next",
      value: ({ fromBytes }) => fromBytes,
      fill: (row, cell) => {
        const { fromBytes, bytes } = row();
        const text = `${formatBytes(fromBytes)} up to ${formatBytes(2 * fromBytes)}`;
        const bar = element("div", "gpuviz-sizes__bar");
        bar.style.width = `${(100 * bytes) / most}%`;
        const line = element("div", "gpuviz-sizes");
        line.append(element("span", "gpuviz-sizes__name", text), bar);
        cell.append(line);
        return () => undefined;
      },
    },
    countColumn("Blocks", "Free blocks of such sizes", ({ count }) => count),
    bytesColumn("Bytes", "Of these blocks", ({ bytes }) => bytes),
    shareColumn("Of the free bytes", "Their share", ({ bytes }) => bytes / Math.max(free, 1)),
  ];
}
