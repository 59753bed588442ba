import { toPixel, type Scale } from "../base/scale.ts";
import type { Lane } from "../model/lane.ts";
import type { UnseenSpan } from "../model/unseen.ts";
import { setText } from "./axes.ts";
import { HEADING_PX, type LaneLayout } from "./lane_layout.ts";
import type { Drawing } from "./plot.ts";

const TITLE_INSET_PX = 8;
/** Beside the names, towards the lanes. */
const PIN_INSET_PX = 4;
const PIN_PX = 3;
const UNSEEN_TINT = 0.25;
const LINE_PX = 13;

/** A ground for each lane, so that an idle one is seen. */
export function drawLaneGrounds({ context, area, theme }: Drawing, layout: LaneLayout): void {
  context.fillStyle = theme.ground;
  for (const { topPx, heightPx } of layout.lanes) {
    context.fillRect(area.left, area.top + topPx, area.width, heightPx);
  }
}

/** Marks when streams were not recorded, over what is known of that time. */
export function drawUnseen(
  { context, area, theme }: Drawing,
  layout: LaneLayout,
  time: Scale,
  spans: readonly UnseenSpan[],
): void {
  context.save();
  context.fillStyle = context.strokeStyle = theme.muted;
  setText(context, "center", "11px");
  for (const span of spans) {
    const fromPx = Math.max(toPixel(time, span.fromNs), area.left);
    const toPx = Math.min(toPixel(time, span.toNs), area.left + area.width);
    for (const { topPx, heightPx } of fromPx < toPx ? layout.lanes : []) {
      const [top, widthPx] = [area.top + topPx, toPx - fromPx];
      context.globalAlpha = UNSEEN_TINT;
      context.fillRect(fromPx, top, widthPx, heightPx);
      context.globalAlpha = 1;
      const text = cutText(context, "not recorded", widthPx - TITLE_INSET_PX);
      context.fillText(text, fromPx + widthPx / 2, top + heightPx / 2);
    }
  }
  context.restore();
}

/** The titles left of the lanes, in one or two lines, cut where they are longer. */
export function drawLaneTitles(
  { context, area, theme }: Drawing,
  layout: LaneLayout,
  isPinned: (lane: Lane) => boolean,
): void {
  context.fillStyle = theme.text;
  setText(context, "right", "11.5px");
  const widthPx = area.left - 2 * TITLE_INSET_PX;
  const shown = cutApart(
    context,
    layout.lanes.map(({ lane }) => lane.title),
    layout.lanes.map(({ heightPx }) => heightPx < 2 * LINE_PX),
    widthPx,
  );
  layout.lanes.forEach(({ lane, topPx, heightPx }, at) => {
    const lines = shown[at] ?? [];
    if (isPinned(lane)) {
      drawPin(context, area.left - PIN_INSET_PX, area.top + topPx + heightPx / 2);
    }
    const middle = area.top + topPx + heightPx / 2 - ((lines.length - 1) * LINE_PX) / 2;
    lines.forEach((line, place) =>
      context.fillText(line, area.left - TITLE_INSET_PX, middle + place * LINE_PX),
    );
  });
}

/** A triangle beside the name of a lane, upwards. */
function drawPin(context: CanvasRenderingContext2D, x: number, y: number): void {
  context.beginPath();
  context.moveTo(x, y - PIN_PX);
  context.lineTo(x + PIN_PX, y + PIN_PX / 2);
  context.lineTo(x - PIN_PX, y + PIN_PX / 2);
  context.fill();
}

/** The names of groups of lanes, each above the first of its lanes. */
export function drawHeadings({ context, area, theme }: Drawing, layout: LaneLayout): void {
  context.fillStyle = theme.text;
  setText(context, "left", "600 11px");
  for (const { title, topPx } of layout.headings) {
    context.fillText(title, area.left, area.top + topPx + HEADING_PX / 2);
  }
}

function inLines(context: CanvasRenderingContext2D, text: string, widthPx: number): string[] {
  const words = text.split(" ");
  let first = words.shift() ?? "";
  while (words[0] !== undefined && context.measureText(`${first} ${words[0]}`).width <= widthPx) {
    first += ` ${words.shift()}`;
  }
  const rest = words.join(" ");
  return [first, rest]
    .filter((line) => line !== "")
    .map((line) => cutInside(context, line, widthPx));
}

/** Of what texts have in common, so much at most is kept before the first difference. */
const MOST_COMMON = 6;

/**
 * The lines of texts, in which as much is left out as there is no room for.
 *
 * Texts that would then look alike begin a little before they differ.
 */
export function cutApart(
  context: CanvasRenderingContext2D,
  texts: readonly string[],
  isOneLine: readonly boolean[],
  widthPx: number,
): readonly (readonly string[])[] {
  const shown = texts.map((text, at) =>
    isOneLine[at] === true ? [cutInside(context, text, widthPx)] : inLines(context, text, widthPx),
  );
  const alike = new Map<string, Set<string>>();
  shown.forEach((lines, at) => {
    const key = lines.join(" ");
    alike.set(key, (alike.get(key) ?? new Set()).add(texts[at] ?? ""));
  });
  return shown.map((lines, at) => {
    const text = texts[at] ?? "";
    const others = [...(alike.get(lines.join(" ")) ?? [])].filter((other) => other !== text);
    if (others.length === 0) {
      return lines;
    }
    const differs = Math.max(...others.map((other) => inCommon(text, other)));
    const word = text.slice(0, differs).search(/[^\p{L}\p{N}]?[\p{L}\p{N}]*$/u);
    return [cutText(context, `…${text.slice(Math.max(word, differs - MOST_COMMON))}`, widthPx)];
  });
}

/** How many characters two texts begin with alike. */
function inCommon(one: string, other: string): number {
  let count = 0;
  while (count < one.length && one[count] === other[count]) {
    count += 1;
  }
  return count;
}

const HANDLE = /0x[0-9a-f]+$/;
/** Words of a longer text that are kept: its first one, and those that tell texts apart. */
const LEAST_WORDS = 3;

/**
 * A text with as much of its middle left out as there is no room for.
 *
 * Streams differ at the ends of their names, in their lines and handles.
 */
export function cutInside(
  context: CanvasRenderingContext2D,
  text: string,
  widthPx: number,
): string {
  const words = text.split(" ");
  const isTooWide = (): boolean => context.measureText(words.join(" ")).width > widthPx;
  while (words.length > LEAST_WORDS && isTooWide()) {
    words.splice(1, 1);
  }
  const endShare = words.length > 1 || HANDLE.test(text) ? 0.5 : 0.25;
  return cutText(context, words.join(" "), widthPx, endShare);
}

/** A text with its end cut off where there is no room, but for a share of what is kept. */
export function cutText(
  context: CanvasRenderingContext2D,
  text: string,
  widthPx: number,
  endShare = 0,
): string {
  if (context.measureText(text).width <= widthPx) {
    return text;
  }
  const cut = (kept: number): string => {
    const end = Math.floor(kept * endShare);
    return `${text.slice(0, kept - end)}…${text.slice(text.length - end)}`;
  };
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (context.measureText(cut(middle)).width <= widthPx) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low === 0 ? "" : cut(low);
}
