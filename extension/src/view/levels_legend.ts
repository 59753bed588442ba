import { formatBytes, formatCount, formatTime } from "../base/format.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { element } from "./dom.ts";
import { LEVEL_STYLES } from "./step_lines.ts";
import type { Selection } from "./selection.ts";

const MEANINGS = {
  reserved: "taken from the device by the allocator",
  allocated: "in blocks that the program holds",
  active: "allocated, or freed but a stream may still use it",
  requested: "what the program asked for, before rounding",
} as const;

/** The legend of the levels; it also reads out the exact values at the cursor or the moment. */
export function levelsLegend(
  parent: HTMLElement,
  timeline: DeviceTimeline,
  selection: Selection,
): () => void {
  const where = element("p", "gpuviz-readout__where");
  const list = element("dl", "gpuviz-readout");
  const values = LEVEL_STYLES.map((style) => {
    const entry = element("div", "gpuviz-readout__entry");
    const name = element("dt", "gpuviz-readout__name");
    name.title = MEANINGS[style.name];
    name.append(
      element("span", `gpuviz-key gpuviz-key--${style.name}`),
      style.name,
    );
    const value = element("dd", "gpuviz-readout__value");
    value.dataset["level"] = style.name;
    entry.append(name, value);
    list.append(entry);
    return { style, value };
  });
  parent.append(where, list);
  const show = (): void => {
    const { cursorNs, momentRow, window: shown } = selection;
    const row =
      cursorNs.value === undefined
        ? momentRow.value
        : timeline.rowAt(cursorNs.value);
    const timeNs = cursorNs.value ?? timeline.events.timeNs[row] ?? 0;
    const { fromNs, toNs } = shown.range.value;
    const place =
      cursorNs.value === undefined ? "At the moment shown" : "At the cursor";
    where.textContent = `${place}: ${formatTime(timeNs, (toNs - fromNs) / 2000)}, ${timeline.placeOf(row)}`;
    for (const { style, value } of values) {
      const bytes = timeline.levels[style.name][row] ?? 0;
      value.textContent = formatBytes(bytes);
      value.append(
        element("span", "gpuviz-readout__exact", `${formatCount(bytes)} B`),
      );
    }
  };
  show();
  const stops = [selection.cursorNs, selection.momentRow].map((changed) =>
    changed.subscribe(show),
  );
  return () => {
    stops.forEach((stop) => {
      stop();
    });
  };
}
