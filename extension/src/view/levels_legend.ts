import { formatBytes, formatCount, formatDuration, formatTime } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import { sampleAt, usedAt } from "../model/device_memory.ts";
import { LEVEL_NAMES } from "../model/levels.ts";
import { categoriesLegend } from "./colour_switch.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";
import type { ShownLevel } from "./step_lines.ts";

const MEANINGS = {
  reserved: "taken from the device by the allocator",
  allocated: "in blocks that the program holds",
  active: "allocated, or freed but a stream may still use it",
  requested: "what the program asked for, before rounding",
  used: "by all processes of the device, as sampled",
} as const;
const SWITCHED = ["active", "requested", "used"] as const;

/** The legend of the levels; it also reads out the exact values at the cursor or the moment. */
export function levelsLegend(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const { selection } = chart;
  const where = element("p", "gpuviz-readout__where");
  const list = element("dl", "gpuviz-readout");
  parent.append(where);
  categoriesLegend(scope, parent, chart);
  parent.append(list);
  const values = {
    reserved: addLevel(list, "reserved", MEANINGS.reserved),
    allocated: addLevel(list, "allocated", MEANINGS.allocated),
    active: addLevel(list, "active", MEANINGS.active),
    requested: addLevel(list, "requested", MEANINGS.requested),
    used: addLevel(list, "used", MEANINGS.used),
  };
  SWITCHED.forEach((name) => addSwitch(values[name], name, chart, scope));
  const show = (): void => {
    const { timeline, used } = chart;
    const { row, timeNs, withinNs } = selection.shownState(timeline);
    const place = selection.cursorNs.value === undefined ? "At the moment shown" : "At the cursor";
    const within = withinNs === 0 ? "" : `, the most within ${formatDuration(withinNs)}`;
    const event = element("span", "", `, ${timeline.placeOf(row)}`);
    const time = formatTime(timeNs, selection.resolutionNs);
    where.replaceChildren(`${place}: ${time}${within}`, event);
    values.used.parentElement?.toggleAttribute("hidden", used === undefined);
    if (used !== undefined) {
      const sampledNs = used.timeNs[sampleAt(used, timeNs)] ?? 0;
      showBytes(values.used, usedAt(used, timeNs));
      const when = `sampled at ${formatTime(sampledNs, 1e5)}`;
      values.used.append(element("span", "gpuviz-readout__when", when));
    }
    for (const name of LEVEL_NAMES) {
      const isKnown = name !== "reserved" || timeline.knowsSegments;
      const bytes = timeline.lines[name].values[row] ?? 0;
      showBytes(values[name], isKnown ? bytes : undefined);
    }
  };
  const { cursorNs, momentRow, window: shown } = selection;
  scope.follow(show, cursorNs, momentRow, shown.range, chart.revision);
}

/** Shows a number of bytes; its title has the exact one. */
export function showBytes(value: HTMLElement, bytes?: number): void {
  value.textContent = bytes === undefined ? "unknown" : formatBytes(bytes);
  value.title = bytes === undefined ? "" : `${formatCount(bytes)} B`;
}

/** Lets the reader draw a level; it appears where it differs from what is allocated. */
function addSwitch(
  value: HTMLElement,
  name: ShownLevel,
  { shownLevels }: ChartContext,
  scope: Scope,
): void {
  const checked = shownLevels.value.has(name);
  const check = element("input", "gpuviz-check", { type: "checkbox", checked });
  value.previousElementSibling?.firstElementChild?.prepend(check);
  scope.listen(check, "change", () => {
    const shown = new Set(shownLevels.value);
    shown[check.checked ? "add" : "delete"](name);
    shownLevels.value = shown;
  });
}

/** Adds a level to the list and returns the element that shows its value. */
export function addLevel(
  list: HTMLElement,
  level: string,
  meaning: string,
  label: string = level === "used" ? "device used" : level,
): HTMLElement {
  const entry = element("div", "gpuviz-readout__entry");
  const term = element("dt", "gpuviz-readout__name", { title: meaning });
  const name = element("label", "");
  name.append(element("span", `gpuviz-key gpuviz-key--${level}`), label);
  term.append(name);
  const value = element("dd", "gpuviz-readout__value");
  value.dataset["level"] = level;
  entry.append(term, value);
  list.append(entry);
  return value;
}
