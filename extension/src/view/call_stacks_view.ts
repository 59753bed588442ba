import { formatBytes, formatCount, formatDuration, formatExactBytes } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import { callTree } from "../model/icicle.ts";
import { stackSums, type StackSums, type Sums } from "../model/stack_sums.ts";
import type { Frame, Stacks } from "../model/stacks.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";
import { icicleView, type Measure } from "./icicle_view.ts";
import type { RANGE_KINDS } from "../wire/codes.ts";
import type { ShowWindow } from "./time_window.ts";

const BYTES = { format: formatBytes, exact: formatExactBytes };
const TIME = { format: formatDuration, exact: formatDuration };
const COUNT = { format: formatCount, exact: formatCount };
interface Sum extends Measure {
  readonly name: keyof Sums;
  /** Of what part of a training step; of all if undefined. */
  readonly phase?: (typeof RANGE_KINDS)[number];
}
const MEASURES: readonly Sum[] = [
  { name: "liveBytes", text: "allocated at the peak", ...BYTES },
  { name: "activationBytes", text: "of activations at the peak", ...BYTES },
  { name: "endBytes", text: "still allocated at the end", ...BYTES },
  { name: "totalBytes", text: "allocated in all", ...BYTES },
  { name: "kernelNs", text: "in kernels", ...TIME },
  { name: "copyNs", text: "in copies", ...TIME },
  { name: "waitNs", text: "in waits of the host", ...TIME },
  { name: "kernelNs", phase: "forward", text: "in kernels of the forward pass", ...TIME },
  { name: "kernelNs", phase: "backward", text: "in kernels of the backward pass", ...TIME },
  { name: "kernelCount", text: "kernel launches", ...COUNT },
  { name: "idleNs", text: "of idle time of the GPU", ...TIME },
];
const DEEPEST = 64;
const BY_MODULE = "by module";
/** What a tree is of, and the path of a call stack in it. */
const PATHS: Readonly<Record<string, (stacks: Stacks, stack: number) => readonly Frame[]>> = {
  "from the outermost call": (stacks, stack) =>
    stacks.framesOf(stack).slice(0, DEEPEST).toReversed(),
  "from the innermost call": (stacks, stack) => stacks.framesOf(stack).slice(0, DEEPEST),
  [BY_MODULE]: (stacks, stack) => stacks.modulePathOf(stack),
};

/** What was allocated, launched and waited for, as a tree of calls, or of modules. */
export function callStacksView(scope: Scope, parent: HTMLElement, chart: ChartContext): ShowWindow {
  const bar = element("div", "gpuviz-controls");
  const measures = choice(scope, bar, "What");
  const direction = choice(scope, bar, "Direction");
  scope.append(parent, bar);
  let sums: readonly StackSums[] = [];
  const show = scope.follow(
    (shown) => {
      const { stacks } = chart;
      const measure = MEASURES.find(({ text }) => text === measures.chosen.value);
      const pathOf = PATHS[direction.chosen.value];
      if (measure !== undefined && pathOf !== undefined) {
        const { name, phase } = measure;
        const chosen = sums.filter(({ stack }) => !phase || stacks.phaseOf(stack) === phase);
        const amounts = new Map(chosen.map((each) => [each.stack, each.sums[name]]));
        const tree = callTree(amounts, (stack) => pathOf(stacks, stack));
        icicleView(shown, parent, chart, tree, measure);
      }
    },
    measures.chosen,
    direction.chosen,
  );
  let hasRows = false;
  return (window) => {
    const { contents, stacks } = chart;
    sums = stackSums(contents, window);
    const { hasPhases } = stacks;
    const hasCategories = contents.gpu.blockCategories.of(contents.device).size > 0;
    const offered = MEASURES.filter(({ name, phase }) =>
      name === "activationBytes" ? hasCategories : hasPhases || phase === undefined,
    );
    measures.offer(offered.map(({ text }) => text));
    direction.offer(Object.keys(PATHS).filter((text) => hasPhases || text !== BY_MODULE));
    if (!hasRows && sums.length > 0) {
      hasRows = true;
      const first = MEASURES.find(({ name }) => sums.some((each) => each.sums[name] > 0));
      measures.chosen.value = first?.text ?? "";
    }
    show();
  };
}

/** A list of texts, one of which is chosen, at first the first. */
interface Choice {
  readonly chosen: Signal<string>;
  readonly offer: (texts: readonly string[]) => void;
}

function choice(scope: Scope, parent: HTMLElement, label: string): Choice {
  const list = element("select", "gpuviz-select", { ariaLabel: label });
  parent.append(list);
  const chosen = new Signal("");
  scope.listen(list, "change", () => {
    chosen.value = list.value;
  });
  const offer = (texts: readonly string[]): void => {
    if (texts.length !== list.options.length) {
      list.replaceChildren(...texts.map((text) => new Option(text)));
      chosen.value ||= texts[0] ?? "";
      list.value = chosen.value;
    }
  };
  scope.follow(() => {
    list.value = chosen.value;
  }, chosen);
  return { chosen, offer };
}
