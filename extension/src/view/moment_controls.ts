import { ACTIONS } from "../wire/codes.ts";
import { counted, formatAddress, formatBytes, formatTime } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { isPendingAfter, originOf } from "../model/blocks.ts";
import { freeBlocks, freeSpace } from "../model/moment.ts";
import { actionButton, element, legendEntry } from "./dom.ts";
import type { ChartContext } from "./chart_context.ts";
import { copyText } from "./copy_text.ts";
import { csv } from "./data_table.ts";

/** Says which moment is shown, with its totals, and moves it. */
export function momentControls(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const { selection } = chart;
  const bar = element("div", "gpuviz-controls");
  const last = (): number => Math.max(chart.timeline.events.count - 1, 0);
  const go = (label: string, title: string, row: () => number): HTMLButtonElement =>
    actionButton(scope, label, title, () => {
      selection.momentRow.value = Math.min(Math.max(row(), chart.timeline.firstRow), last());
    });
  bar.append(
    go("Start", "Show the start of the recording", () => chart.timeline.firstRow),
    go("Peak", "Show the peak of allocated bytes", () => chart.timeline.peak),
    go("End", "Show the end of the recording", last),
    go("◀ Event", "Previous event", () => selection.momentRow.value - 1),
    go("Event ▶", "Next event", () => selection.momentRow.value + 1),
    actionButton(scope, "Copy blocks", "Copy the blocks at this moment as CSV", () => {
      copyText(blocksAt(chart, selection.momentRow.value));
      chart.say("Copied.");
    }),
  );
  const where = element("p", "gpuviz-moment", { ariaLive: "polite" });
  const legend = element("ul", "gpuviz-legend");
  legend.append(
    legendEntry("gpuviz-key--cached", "free segment (cached): empty_cache releases it"),
    legendEntry("gpuviz-key--split", "free beside blocks (split off)"),
  );
  parent.append(bar, where, legend);
  const show = (): void => {
    const row = selection.momentRow.value;
    const moment = describeMoment(chart.timeline, row, describeEvent(chart, row));
    where.textContent = moment + describePinned(chart, row);
  };
  scope.follow(show, selection.momentRow, chart.revision);
}

/** The blocks after an event by address, as CSV. */
function blocksAt({ timeline, names, stacks }: ChartContext, row: number): string {
  const { blocks, events } = timeline;
  const rows = timeline
    .segmentsAfter(row)
    .flatMap((segment) => segment.blocks.map((block) => ({ segment, block })));
  const origin = (block: number): number => originOf(blocks, block);
  return csv(rows, [
    { title: "Address", value: ({ block }) => formatAddress(blocks.address[block] ?? 0) },
    { title: "Size (bytes)", value: ({ block }) => blocks.size[block] },
    { title: "Requested (bytes)", value: ({ block }) => events.requestedSize[origin(block)] },
    ...(timeline.knowsSegments
      ? [
          {
            title: "Segment",
            value: ({ segment }: (typeof rows)[0]) => formatAddress(segment.from),
          },
        ]
      : []),
    { title: "Stream", value: ({ block }) => names.stream(events.stream[origin(block)] ?? 0) },
    { title: "Pool", value: ({ block }) => names.pool(events.pool[origin(block)] ?? 0) },
    {
      title: "State",
      value: ({ block }) => (isPendingAfter(blocks, block, row) ? "free pending" : "allocated"),
    },
    { title: "Allocated at (ns)", value: ({ block }) => blocks.fromNs[block] },
    { title: "Line", value: ({ block }) => stacks.siteOf(events.stack[origin(block)] ?? 0) },
  ]);
}

/** What an event did, and the line that it came from. */
function describeEvent({ timeline, stacks }: ChartContext, row: number): string {
  const { action, size, stack, count, initialCount } = timeline.events;
  if (row < initialCount || row >= count) {
    return "";
  }
  const name = (ACTIONS[action[row] ?? 0] ?? "").replaceAll("_", " ");
  // A name from right to left, or one that turns what follows, turns nothing but itself.
  const site = `\u2068${stacks.siteOf(stack[row] ?? 0)}\u2069`;
  return ` (${name}, ${formatBytes(size[row] ?? 0)}, ${site})`;
}

/** The pinned memory at the time of an event; nothing where none was recorded. */
function describePinned({ host, timeline }: ChartContext, row: number): string {
  if (!host.isRecorded) {
    return "";
  }
  const { allocated, reserved } = host.levelsAt(timeline.events.timeNs[row] ?? 0);
  return ` Pinned host memory: ${formatBytes(allocated)} allocated of ${formatBytes(reserved)} reserved.`;
}

function describeMoment(timeline: DeviceTimeline, row: number, event: string): string {
  const { events, blocks, lines } = timeline;
  const shown = timeline.segmentsAfter(row);
  const { free, largestFree } = freeSpace(freeBlocks(shown, blocks));
  const name = row === timeline.peak ? "Peak of allocated memory" : "Moment";
  const time = formatTime(events.timeNs[row] ?? 0, timeline.endNs / 5000);
  const held = shown.reduce((sum, segment) => sum + segment.blocks.length, 0);
  const allocated = `${formatBytes(lines.allocated.values[row] ?? 0)} allocated`;
  const when = `${name}, ${time}, ${timeline.placeOf(row)}${event}`;
  if (!timeline.knowsSegments) {
    return `${when}: ${allocated} in ${counted(held, "block")}; this allocator does not expose its segments, so each block has its own bar.`;
  }
  return (
    `${when}: ${allocated} of ${formatBytes(lines.reserved.values[row] ?? 0)} reserved; ` +
    `${counted(held, "block")} in ${counted(shown.length, "segment")}; ` +
    `${formatBytes(free)} free in segments, the largest piece ${formatBytes(largestFree)}.`
  );
}
