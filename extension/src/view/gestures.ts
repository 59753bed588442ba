import { Signal } from "../base/signal.ts";
import { fromPixel, type Scale } from "../base/scale.ts";
import type { Plot } from "./plot.ts";
import { element } from "./dom.ts";
import type { Selection } from "./selection.ts";
import type { TimeRange } from "./time_window.ts";

const CLICK_SLACK_PX = 4;
const WHEEL_ZOOM_PER_PX = 0.0015;
/** Browsers report a pinch on a trackpad as a wheel with Ctrl, in small steps. */
const PINCH_ZOOM_PER_PX = 0.015;
/** A turn of a mouse's wheel is more, also with Ctrl. */
const LARGEST_PINCH_PX = 50;
const HINT_MS = 1500;
const KEY_ZOOM = 0.6;
const KEY_STEP = 0.01;
const KEY_PAN = 0.2;

/** Chooses a moment; a place is given where it was chosen with a click. */
type Choose = (timeNs: number, place?: MouseEvent) => void;

/** The part of the axis that a drag has marked so far. */
type Marked = Signal<{ readonly fromPx: number; readonly toPx: number } | undefined>;

interface Press {
  readonly x: number;
  readonly timeNs: number;
  readonly range: TimeRange;
  /** Whether a drag selects a span, zooms to what it marks, or moves the part shown. */
  readonly does: "select" | "zoom" | "move";
}

/** Lets a plot with a time axis zoom, pan, show a cursor and choose a moment. */
export function addTimeGestures(
  plot: Plot,
  selection: Selection,
  scale: () => Scale,
  choose: Choose,
): Marked {
  const marked: Marked = new Signal(undefined);
  const time = (event: MouseEvent): number => {
    const { left, width } = plot.area;
    return fromPixel(scale(), Math.min(Math.max(event.offsetX, left), left + width));
  };
  addPointer(plot, selection, marked, time, choose);
  addWheel(plot, selection, time);
  addKeys(plot, selection, choose);
  plot.scope.listen(plot.host, "pointerleave", () => {
    selection.cursorNs.value = undefined;
  });
  return marked;
}

function addPointer(
  plot: Plot,
  selection: Selection,
  marked: Marked,
  time: (event: MouseEvent) => number,
  choose: Choose,
): void {
  const { scope, host } = plot;
  let dragged = false;
  let down: Press | undefined;
  scope.listen(host, "pointerdown", (event) => {
    if (event.button === 0) {
      const range = selection.window.range.value;
      down = { x: event.offsetX, timeNs: time(event), range, does: doneBy(event) };
      host.setPointerCapture(event.pointerId);
    }
  });
  scope.listen(host, "pointermove", (event) => {
    const byPx = event.offsetX - (down?.x ?? event.offsetX);
    if (down === undefined || Math.abs(byPx) <= CLICK_SLACK_PX) {
      marked.value = undefined;
    } else if (down.does !== "move") {
      marked.value = { fromPx: down.x, toPx: event.offsetX };
    } else {
      const { fromNs, toNs } = down.range;
      const byNs = (byPx / plot.area.width) * (toNs - fromNs);
      selection.window.show(fromNs - byNs, toNs - byNs);
    }
    selection.cursorNs.value = time(event);
  });
  scope.listen(host, "pointerup", (event) => {
    const start = down;
    down = undefined;
    if (start !== undefined && marked.value !== undefined) {
      marked.value = undefined;
      const end = time(event);
      const marking = { fromNs: Math.min(start.timeNs, end), toNs: Math.max(start.timeNs, end) };
      if (start.does === "select") {
        const [fromNs, toNs] = [Math.round(marking.fromNs), Math.round(marking.toNs)];
        selection.selected.value = undefined;
        selection.measured.value = { fromNs, toNs };
      } else {
        selection.window.show(marking.fromNs, marking.toNs);
      }
    }
    dragged = start !== undefined && Math.abs(event.offsetX - start.x) > CLICK_SLACK_PX;
  });
  scope.listen(host, "pointercancel", () => {
    down = undefined;
    marked.value = undefined;
  });
  addClicks(plot, selection, () => dragged, time, choose);
}

/** A finger moves what is shown, as it does everywhere. */
function doneBy({ ctrlKey, metaKey, shiftKey, pointerType }: PointerEvent): Press["does"] {
  if (ctrlKey || metaKey) {
    return "zoom";
  }
  return shiftKey || pointerType === "touch" ? "move" : "select";
}

/** A click chooses a moment; a double click shows the whole axis and chooses none. */
function addClicks(
  plot: Plot,
  selection: Selection,
  dragged: () => boolean,
  time: (event: MouseEvent) => number,
  choose: Choose,
): void {
  let before = selection.momentRow.value;
  plot.scope.listen(plot.host, "click", (event) => {
    if (event.detail <= 1) {
      before = selection.momentRow.value;
    }
    if (!dragged()) {
      // Clicks have whole-pixel coordinates; the pointer's, which set the cursor, have fractions.
      choose(selection.cursorNs.value ?? time(event), event);
    }
  });
  plot.scope.listen(plot.host, "dblclick", () => {
    selection.momentRow.value = before;
    selection.window.reset();
  });
}

function addWheel(plot: Plot, selection: Selection, time: (event: MouseEvent) => number): void {
  const { host, scope } = plot;
  const hint = element("div", "gpuviz-plot__hint", "Ctrl or ⌘ and wheel zooms");
  hint.hidden = true;
  host.append(hint);
  let hiding: number | undefined;
  scope.defer(() => clearTimeout(hiding));
  scope.listen(
    host,
    "wheel",
    (event) => {
      const { deltaX, deltaY, ctrlKey, metaKey } = event;
      if (Math.abs(deltaX) > Math.abs(deltaY)) {
        event.preventDefault();
        selection.window.pan(deltaX / plot.area.width);
        return;
      }
      const hasModifier = ctrlKey || metaKey;
      if (!hasModifier && !host.matches(":focus")) {
        hint.hidden = false;
        clearTimeout(hiding);
        hiding = window.setTimeout(() => {
          hint.hidden = true;
        }, HINT_MS);
        return;
      }
      const leavesChart = deltaY > 0 && selection.window.isFull && !hasModifier;
      if (!leavesChart) {
        event.preventDefault();
        const isPinch = ctrlKey && Math.abs(deltaY) < LARGEST_PINCH_PX;
        const perPx = isPinch ? PINCH_ZOOM_PER_PX : WHEEL_ZOOM_PER_PX;
        selection.window.zoom(Math.exp(deltaY * perPx), time(event));
      }
    },
    { passive: false },
  );
}

function addKeys(plot: Plot, selection: Selection, choose: Choose): void {
  plot.scope.listen(plot.host, "keydown", (event) => {
    const { window: shown, cursorNs } = selection;
    const { fromNs, toNs } = shown.range.value;
    const cursor = cursorNs.value ?? (fromNs + toNs) / 2;
    const step = (event.key === "ArrowLeft" ? -1 : 1) * KEY_STEP * (toNs - fromNs);
    const actions: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => {
        cursorNs.value = Math.max(cursor + step, fromNs);
      },
      ArrowRight: () => {
        cursorNs.value = Math.min(cursor + step, toNs);
      },
      Enter: () => choose(cursor),
      "+": () => shown.zoom(KEY_ZOOM, cursor),
      "-": () => shown.zoom(1 / KEY_ZOOM, cursor),
      "0": () => shown.reset(),
    };
    const isPan = event.shiftKey && event.key.startsWith("Arrow");
    const action = isPan ? () => shown.pan(Math.sign(step) * KEY_PAN) : actions[event.key];
    if (action !== undefined) {
      event.preventDefault();
      action();
    }
  });
}
