import { formatBytes, formatCount, formatTime } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import { sampleAt, usedAt } from "../model/device_memory.ts";
import type { LevelName } from "../model/levels.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";
import { LEVEL_STYLES } from "./step_lines.ts";

const MEANINGS = {
  reserved: "taken from the device by the allocator",
  allocated: "in blocks that the program holds",
  active: "allocated, or freed but a stream may still use it",
  requested: "what the program asked for, before rounding",
} as const;

/** The legend of the levels; it also reads out the exact values at the cursor or the moment. */
export function levelsLegend(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const { selection } = chart;
  const where = element("p", "gpuviz-readout__where");
  const list = element("dl", "gpuviz-readout");
  const values = LEVEL_STYLES.map(({ name }) => {
    const key = element("span", `gpuviz-key gpuviz-key--${name}`);
    return { name, value: addEntry(list, name, MEANINGS[name], key, name) };
  });
  parent.append(where, list);
  const used = addUsed(list, chart, scope);
  const show = (): void => {
    const { timeline } = chart;
    const { cursorNs, momentRow, window: shown } = selection;
    const row = cursorNs.value === undefined ? momentRow.value : timeline.rowAt(cursorNs.value);
    const timeNs = cursorNs.value ?? timeline.events.timeNs[row] ?? 0;
    const { fromNs, toNs } = shown.range.value;
    const place = cursorNs.value === undefined ? "At the moment shown" : "At the cursor";
    where.textContent = `${place}: ${formatTime(timeNs, (toNs - fromNs) / 2000)}, ${timeline.placeOf(row)}`;
    used.parentElement?.toggleAttribute("hidden", chart.used === undefined);
    if (chart.used !== undefined) {
      const sampledNs = chart.used.timeNs[sampleAt(chart.used, timeNs)] ?? 0;
      const when = `sampled at ${formatTime(sampledNs, 1e5)}`;
      used.replaceChildren(
        ...exactly(usedAt(chart.used, timeNs)),
        element("span", "gpuviz-readout__exact", when),
      );
    }
    for (const { name, value } of values) {
      const isKnown = name !== "reserved" || timeline.knowsSegments;
      const bytes = timeline.lines[name].values[row] ?? 0;
      value.replaceChildren(...(isKnown ? exactly(bytes) : ["unknown"]));
    }
  };
  scope.follow(show, selection.cursorNs, selection.momentRow, chart.revision);
}

function exactly(bytes: number): (string | HTMLElement)[] {
  const exact = element("span", "gpuviz-readout__exact", `${formatCount(bytes)} B`);
  return [formatBytes(bytes), exact];
}

/** Drawn only when asked for: other processes may use far more than this program. */
function addUsed(list: HTMLElement, { showsUsed }: ChartContext, scope: Scope): HTMLElement {
  const label = element("label", "");
  const check = element("input", "gpuviz-check", { type: "checkbox", checked: showsUsed.value });
  label.append(check, element("span", "gpuviz-key gpuviz-key--used"), "device used");
  scope.listen(check, "change", () => {
    showsUsed.value = check.checked;
  });
  return addEntry(list, "used", "by all processes, as sampled; check it to draw it", label);
}

/** Adds a level to the list and returns the element that shows its value. */
function addEntry(
  list: HTMLElement,
  level: LevelName | "used",
  meaning: string,
  ...name: readonly (HTMLElement | string)[]
): HTMLElement {
  const entry = element("div", "gpuviz-readout__entry");
  const term = element("dt", "gpuviz-readout__name", { title: meaning });
  term.append(...name);
  const value = element("dd", "gpuviz-readout__value");
  value.dataset["level"] = level;
  entry.append(term, value);
  list.append(entry);
  return value;
}
