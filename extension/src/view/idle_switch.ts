import { Scope } from "../base/scope.ts";
import type { ChartContext } from "./chart_context.ts";
import { button, element } from "./dom.ts";

/** Shows or hides when streams had nothing to do; nothing where there is no stream. */
export function idleSwitch(parent: HTMLElement, chart: ChartContext): Scope {
  const scope = new Scope();
  const bar = element("div", "gpuviz-controls");
  const toggle = button("Idle gaps", "Show when each stream had nothing to do, and why; also: G");
  scope.listen(toggle, "click", () => {
    chart.showsIdle.value = !chart.showsIdle.value;
  });
  bar.append(toggle);
  parent.append(bar);
  const show = (): void => {
    bar.hidden = !chart.lanes.some((lane) => lane.stream !== undefined);
    toggle.setAttribute("aria-pressed", String(chart.showsIdle.value));
  };
  show();
  scope.defer(chart.showsIdle.subscribe(show));
  scope.defer(chart.revision.subscribe(show));
  return scope;
}
