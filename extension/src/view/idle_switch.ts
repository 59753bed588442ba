import type { Scope } from "../base/scope.ts";
import type { ChartContext } from "./chart_context.ts";
import { actionButton, element } from "./dom.ts";

/** What is said where a file without derived tables is shown. */
export const OLDER_FILE =
  "This file was written by an older gpuviz: complete it with `gpuviz convert OLD NEW`.";

/** Shows or hides when streams had nothing to do; nothing where there is no stream. */
export function idleSwitch(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const bar = element("div", "gpuviz-controls");
  const hint = "Show when and why each stream was idle; also: G";
  const toggle = actionButton(scope, "Idle gaps", hint, () => {
    chart.showsIdle.value = !chart.showsIdle.value;
  });
  const older = element("p", "gpuviz-section__hint", OLDER_FILE);
  bar.append(toggle, older);
  parent.append(bar);
  const show = (): void => {
    bar.hidden = !chart.lanes.some((lane) => lane.stream !== undefined);
    toggle.setAttribute("aria-pressed", String(chart.showsIdle.value));
    older.hidden = !chart.showsIdle.value || !chart.gpu.lacksDerived;
  };
  scope.follow(show, chart.showsIdle, chart.revision);
}
