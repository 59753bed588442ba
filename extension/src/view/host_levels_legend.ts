import type { Scope } from "../base/scope.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";
import { addLevel, showBytes } from "./levels_legend.ts";

const MEANINGS = {
  reserved: "allocated by the driver, in use or cached",
  allocated: "in blocks that the program holds",
  active: "allocated, or freed but a copy may still use it",
  requested: "of active: what the program asked for, before rounding",
} as const;

/** The legend of pinned memory; it also reads out the exact values at the cursor or the moment. */
export function hostLevelsLegend(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const { selection } = chart;
  const list = element("dl", "gpuviz-readout");
  parent.append(list);
  const names = ["reserved", "allocated", "active", "requested"] as const;
  const values = names.map((name) => [name, addLevel(list, name, MEANINGS[name])] as const);
  const show = (): void => {
    const levels = chart.host.levelsAt(chart.shownNs);
    for (const [name, value] of values) {
      showBytes(value, levels[name]);
    }
  };
  scope.follow(show, selection.cursorNs, selection.momentRow, chart.revision);
}
