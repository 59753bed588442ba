import { formatBytes, formatDuration, formatExactBytes } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import { callTree } from "../model/icicle.ts";
import { stackSums, type StackSums, type Sums } from "../model/stack_sums.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";
import { icicleView, type Measure } from "./icicle_view.ts";
import type { ShowWindow } from "./tables_view.ts";

const BYTES = { format: formatBytes, exact: formatExactBytes };
const TIME = { format: formatDuration, exact: formatDuration };
const MEASURES: readonly (Measure & { readonly name: keyof Sums })[] = [
  { name: "liveBytes", text: "allocated at the peak", ...BYTES },
  { name: "endBytes", text: "still allocated at the end", ...BYTES },
  { name: "totalBytes", text: "allocated in all", ...BYTES },
  { name: "kernelNs", text: "in kernels", ...TIME },
  { name: "copyNs", text: "in copies", ...TIME },
  { name: "waitNs", text: "in waits of the host", ...TIME },
  { name: "idleNs", text: "of idle time of the GPU", ...TIME },
];
const CALLED = "from the outermost call";
const CALLERS = "from the innermost call";

/** The call stacks of what was allocated, launched and waited for, as a tree of calls. */
export function callStacksView(scope: Scope, parent: HTMLElement, chart: ChartContext): ShowWindow {
  const bar = element("div", "gpuviz-controls");
  const measures = choice(
    scope,
    bar,
    "What",
    MEASURES.map(({ text }) => text),
  );
  const direction = choice(scope, bar, "Direction", [CALLED, CALLERS]);
  scope.append(parent, bar);
  let sums: readonly StackSums[] = [];
  const show = scope.follow(
    (shown) => {
      const measure = MEASURES.find(({ text }) => text === measures.value) ?? MEASURES[0];
      if (measure !== undefined) {
        const amounts = new Map(sums.map((each) => [each.stack, each.sums[measure.name]]));
        const tree = callTree(amounts, chart.stacks, direction.value === CALLERS);
        icicleView(shown, parent, chart, tree, measure);
      }
    },
    measures,
    direction,
  );
  let hasRows = false;
  return (window) => {
    sums = stackSums(chart.contents, window);
    if (!hasRows && sums.length > 0) {
      hasRows = true;
      const first = MEASURES.find(({ name }) => sums.some((each) => each.sums[name] > 0));
      measures.value = first?.text ?? "";
    }
    show();
  };
}

/** A list of texts, one of which is chosen. */
function choice(
  scope: Scope,
  parent: HTMLElement,
  label: string,
  texts: readonly string[],
): Signal<string> {
  const list = element("select", "gpuviz-select", { ariaLabel: label });
  list.append(...texts.map((text) => new Option(text)));
  parent.append(list);
  const chosen = new Signal(texts[0] ?? "");
  scope.listen(list, "change", () => {
    chosen.value = list.value;
  });
  scope.follow(() => {
    list.value = chosen.value;
  }, chosen);
  return chosen;
}
