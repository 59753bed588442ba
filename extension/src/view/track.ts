import type { Scope } from "../base/scope.ts";
import type { ChartContext } from "./chart_context.ts";
import { actionButton, element } from "./dom.ts";
import type { Panes } from "./panes.ts";

/** Below these heights a track closes, so that the others have room. */
export const LEAST_TRACK_PX = 64;
export const LEAST_LOW_TRACK_PX = 48;

/** The parts of a track that its plot and its legend fill. */
export interface Track {
  readonly body: HTMLElement;
  readonly side: HTMLElement;
  /** Sets the share of the height, and the least height, which is at most a part of all. */
  readonly setSize: (px: number, leastPx: number, mostLeast?: string) => void;
}

interface TrackOptions {
  readonly name: string;
  readonly title: string;
  readonly hint: string;
  /** Share of the height. */
  readonly size: number;
  /** The track below it; it is below all if omitted. */
  readonly above?: string;
  /** Whether there is something to show; until then the track is hidden. */
  readonly isThere?: () => boolean;
  /** Below this height it closes by itself. */
  readonly leastPx?: number;
  readonly show: (track: Track) => void;
}

/** Adds a track, with a title that opens and closes it. */
export function addTrack(
  scope: Scope,
  panes: Panes,
  chart: ChartContext,
  { name, title, hint, size, above, isThere = () => true, leastPx = 0, show }: TrackOptions,
): void {
  const pane = panes.add(name, `${title} over time`, size, true, above);
  panes.giveWay(pane, leastPx);
  const head = element("h3", "gpuviz-track__title");
  const toggle = actionButton(scope, title, hint, () => panes.toggle(pane));
  toggle.className = "gpuviz-track__toggle";
  head.append(toggle);
  scope.follow(() => {
    toggle.ariaExpanded = String(pane.isOpen.value);
  }, pane.isOpen);
  const body = element("div", "gpuviz-track__body");
  const frame = element("div", "gpuviz-track__frame");
  frame.append(body);
  const ariaLabel = `Legend of ${title}`;
  const side = element("div", "gpuviz-track__side", { tabIndex: 0, role: "group", ariaLabel });
  pane.root.append(head, frame, side);
  const setSize: Track["setSize"] = (...size) => panes.resize(pane, ...size);
  once(scope, chart, isThere, pane.root, () => show({ body, side, setSize }));
}

/** Calls `show` as soon as there is something for it; `hide` is called until then. */
export function once(
  scope: Scope,
  chart: ChartContext,
  isThere: () => boolean,
  root: HTMLElement,
  show: () => void,
): void {
  root.hidden = true;
  const check = (): void => {
    if (root.hidden && isThere()) {
      root.hidden = false;
      show();
    }
  };
  check();
  scope.watch(check, chart.revision);
}
