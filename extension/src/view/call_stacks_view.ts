import type { Scope } from "../base/scope.ts";
import { stackHoldings, type HoldingName } from "../model/line_rows.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";
import { icicleView } from "./icicle_view.ts";
import type { ShowWindow } from "./tables_view.ts";

const MEASURES: Readonly<Record<HoldingName, string>> = {
  atPeak: "allocated at the peak",
  atEnd: "still allocated at the end",
  inAll: "allocated in all",
};

/** The call stacks of allocations, from the outermost call down to the line, by bytes. */
export function callStacksView(scope: Scope, parent: HTMLElement, chart: ChartContext): ShowWindow {
  const bar = element("div", "gpuviz-controls");
  const label = element("label", "", "Bytes ");
  const choice = element("select", "gpuviz-select");
  choice.append(...Object.entries(MEASURES).map(([name, text]) => new Option(text, name)));
  label.append(choice);
  bar.append(label);
  scope.append(parent, bar);
  let holdings: ReturnType<typeof stackHoldings> = new Map();
  const show = scope.follow((shown) => {
    const name = choice.value in MEASURES ? (choice.value as HoldingName) : "atPeak";
    const bytesOf = new Map([...holdings].map(([stack, held]) => [stack, held[name]]));
    icicleView(shown, parent, chart, bytesOf, MEASURES[name]);
  });
  scope.listen(choice, "change", show);
  return (window) => {
    holdings = stackHoldings(chart.timeline, window);
    show();
  };
}
