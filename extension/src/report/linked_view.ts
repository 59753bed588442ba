import { RangeKind } from "../wire/codes.ts";
import type { Scope } from "../base/scope.ts";
import type { Selected } from "../model/selected.ts";
import {
  SpanKind,
  spanKindOf,
  spanKindOfRange,
  tableOfSpan,
  type SpanTable,
} from "../model/span_kinds.ts";
import type { ChartContext } from "../view/chart_context.ts";
import type { Panes } from "../view/panes.ts";
import { nameOfLane } from "../view/pinned_lanes.ts";
import { arrange } from "./arrangement.ts";
import { NOWHERE, writeAddress, type Address, type SelectedKind } from "./address.ts";

const SETTLED_MS = 200;

/** What a link calls a row of a table. */
const SELECTED_IN: Readonly<Record<SpanTable, SelectedKind>> = {
  activities: "activity",
  ranges: "range",
  hostWaits: "wait",
  apiCalls: "call",
  overheads: "overhead",
  hostSamples: "sample",
  memoryOperations: "memory",
};

/** What an address is about. */
interface Shown {
  readonly chart: ChartContext;
  readonly panes: Panes;
}

/** Shows what an address points at; returns the parts of it that are not in the recording. */
export function showAddress({ chart, panes }: Shown, address: Address): string[] {
  const { selection, timeline } = chart;
  if (address.view !== undefined) {
    arrange(panes, address.view);
  }
  const missing: string[] = [];
  const selected = selectedIn(chart, address.selected);
  if (address.selected !== undefined && selected === undefined) {
    missing.push(writeAddress({ ...NOWHERE, selected: address.selected }));
  }
  selection.selected.value = selected;
  if (address.window === undefined) {
    selection.window.reset();
  } else if (address.window[0] >= selection.window.full.toNs) {
    missing.push(writeAddress({ ...NOWHERE, window: address.window }));
  } else {
    selection.window.show(...address.window);
  }
  selection.kept.value = address.kept;
  const lanes = chart.lanes.map(nameOfLane);
  selection.pinned.value = address.pinned.filter((lane) => lanes.includes(lane));
  missing.push(
    ...address.pinned
      .filter((lane) => !lanes.includes(lane))
      .map((lane) => writeAddress({ ...NOWHERE, pinned: [lane] })),
  );
  if (address.span === undefined) {
    selection.measured.value = undefined;
  } else if (address.span[0] >= selection.window.full.toNs) {
    missing.push(writeAddress({ ...NOWHERE, span: address.span }));
  } else {
    selection.measured.value = { fromNs: address.span[0], toNs: address.span[1] };
  }
  if (address.event !== undefined && address.event >= timeline.events.count) {
    missing.push(writeAddress({ ...NOWHERE, event: address.event }));
  } else {
    selection.momentRow.value = Math.max(address.event ?? timeline.peak, timeline.firstRow);
  }
  return missing.map((each) => each.slice(1));
}

/** Puts an address into the page's own, so that a copied link leads here. */
export function remember(address: Address): void {
  try {
    history.replaceState(null, "", writeAddress(address) || location.pathname + location.search);
  } catch {
    // A page without an origin of its own, as in a sandboxed frame, has no address to change.
  }
}

/** Calls `changed` with the address of what is shown, when it has not changed for a while. */
export function followAddress(
  scope: Scope,
  { chart, panes }: Shown,
  device: number | undefined,
  changed: (address: Address) => void,
): void {
  const { selection, timeline } = chart;
  let settling: number | undefined;
  const follow = (): void => {
    window.clearTimeout(settling);
    settling = window.setTimeout(() => {
      const { fromNs, toNs } = selection.window.range.value;
      const { value: row } = selection.momentRow;
      const { value: spanNs } = selection.measured;
      changed({
        window: selection.window.isFull ? undefined : [fromNs, toNs],
        span: spanNs && [spanNs.fromNs, spanNs.toNs],
        kept: selection.kept.value,
        pinned: selection.pinned.value,
        selected: addressOf(selection.selected.value),
        device,
        event: row === timeline.peak ? undefined : row,
        view: panes.arrangement.value,
      });
    }, SETTLED_MS);
  };
  const { window: shown, measured, kept, pinned, selected, momentRow } = selection;
  scope.watch(follow, shown.range, measured, kept, pinned, selected, momentRow, panes.arrangement);
  scope.defer(() => window.clearTimeout(settling));
}

function addressOf(selected: Selected | undefined): Address["selected"] {
  // A gap has no row of its own that a link could name.
  if (selected === undefined || selected.kind === "gap") {
    return undefined;
  }
  return selected.kind === "block"
    ? { kind: "block", row: selected.block }
    : { kind: SELECTED_IN[tableOfSpan(selected.spanKind)], row: selected.row };
}

function selectedIn(
  { gpu, timeline, device }: ChartContext,
  selected: Address["selected"],
): Selected | undefined {
  if (selected === undefined) {
    return undefined;
  }
  const { kind, row } = selected;
  const span = (spanKind: number, isThere: boolean): Selected | undefined =>
    isThere ? { kind: "span", spanKind, row } : undefined;
  switch (kind) {
    case "block":
      return row < timeline.blocks.count ? { kind: "block", block: row } : undefined;
    case "activity":
      return span(spanKindOf(gpu.activities)(row), gpu.activities.device[row] === device);
    case "range":
      return span(spanKindOfRange(gpu.ranges.kind[row] ?? RangeKind.range), row < gpu.ranges.count);
    case "wait":
      return span(SpanKind.wait, row < gpu.hostWaits.count);
    case "call":
      return span(SpanKind.call, row < gpu.apiCalls.count);
    case "overhead":
      return span(SpanKind.overhead, row < gpu.overheads.count);
    case "sample":
      return span(gpu.hostSamples.kindOf(row), row < gpu.hostSamples.count);
    case "memory":
      return span(gpu.memoryOperations.kindOf(row), gpu.memoryOperations.device[row] === device);
  }
}
