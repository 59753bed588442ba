import { Scope } from "../base/scope.ts";
import { callStacksView } from "./call_stacks_view.ts";
import type { ChartContext } from "./chart_context.ts";
import { copyText } from "./copy_text.ts";
import { csvOf } from "./data_table.ts";
import { actionButton, element } from "./dom.ts";
import type { Drawer } from "./drawer.ts";
import { fragmentationView } from "./fragmentation_view.ts";
import { copiesTable, kernelsTable, synchronizationsTable } from "./gpu_tables.ts";
import { Pace } from "./pace.ts";
import { linesView } from "./lines_view.ts";
import type { ShowWindow, TimeRange } from "./time_window.ts";

export interface Part {
  readonly name: string;
  readonly title: string;
  readonly hint: string;
  /** Whether a recording without memory has nothing for it. */
  readonly isOfMemory?: boolean;
  readonly create: (scope: Scope, parent: HTMLElement, chart: ChartContext) => ShowWindow;
}

const OF_MEMORY: readonly Part[] = [
  {
    name: "lines",
    title: "Lines",
    hint: "What each of the program's own lines costs. A click shows its source.",
    create: linesView,
  },
  {
    name: "fragmentation",
    title: "Fragmentation",
    hint: "Unused reserved memory, over time and at the moment shown in the charts.",
    isOfMemory: true,
    create: fragmentationView,
  },
];

/** Not in dashboards, for which its script is too large. */
export const CALL_STACKS: Part = {
  name: "call-stacks",
  title: "Call stacks",
  hint: "Who called the lines that allocated, launched and waited; sizes are those of rounded blocks.",
  create: callStacksView,
};

const OF_GPU: readonly Part[] = [
  {
    name: "kernels",
    title: "Kernels",
    hint: "By name; click one to show its longest launch in the charts.",
    create: kernelsTable,
  },
  {
    name: "copies",
    title: "Copies",
    hint: "By direction and kind of host memory.",
    create: copiesTable,
  },
  {
    name: "waits",
    title: "Waits",
    hint: "What blocked the host, by line.",
    create: synchronizationsTable,
  },
];

export const LIVE: readonly Part[] = [...OF_MEMORY, ...OF_GPU];

/** Leaves 95 % of the page's time for other things. */
const PACE = { shortestMs: 500, rest: 20 };
const WINDOW_HINT =
  "The selected span, or without one the time shown in the charts. Kernels, copies and waits count " +
  "with their time in it, and the peak is the peak within it, as in recording.window(start, end).";

interface Shown {
  readonly part: Part;
  readonly panel: HTMLElement;
  show: ShowWindow | undefined;
  /** The number of the update that it shows. */
  update: number;
}

/** Tables of the data in the tracks. */
export interface TablesView {
  readonly scope: Scope;
  /** Updates the tables that can be seen. */
  readonly refresh: () => void;
}

/** Tables in the drawer; those that can be seen are updated as the recording grows. */
export function tablesView(drawer: Drawer, chart: ChartContext, ofAll = LIVE): TablesView {
  const scope = new Scope();
  const { window: time, measured } = chart.selection;
  const parts: Shown[] = ofAll.map((part) => {
    const panel = drawer.add(scope, part.name, part.title);
    panel.append(element("p", "gpuviz-section__hint gpuviz-drawer__hint", part.hint));
    return { part, panel, show: undefined, update: 0 };
  });
  const { isOfWindow, tools } = tableTools(scope, drawer, chart);
  let update = 1;
  const refresh = (): void => {
    const shown = time.isFull ? undefined : time.range.value;
    const window = isOfWindow.checked ? (measured.value ?? shown) : undefined;
    for (const each of parts) {
      const { part, panel } = each;
      if (panel.checkVisibility() && each.update !== update) {
        each.update = update;
        each.show ??= part.create(scope, panel, chart);
        each.show(window);
      }
    }
    tools.hidden = parts.every(({ part }) => part.name !== drawer.shown.value);
  };
  const again = (): void => {
    update += 1;
    refresh();
  };
  const offer = (): void => {
    const hasMemory = chart.timeline.events.count > 0;
    const hasGpu = chart.gpu.activities.count + chart.gpu.apiCalls.count > 0;
    for (const { part } of parts) {
      drawer.offer(
        part.name,
        (hasMemory && !OF_GPU.includes(part)) || (hasGpu && !part.isOfMemory),
      );
    }
    drawer.prefer("request", "lines");
  };
  offer();
  refresh();
  scope.watch(offer, chart.revision);
  const pace = new Pace(drawer.panels, PACE, again);
  scope.use(pace.scope);
  scope.listen(isOfWindow, "change", again);
  scope.watch(refresh, drawer.shown);
  const observer = new ResizeObserver(refresh);
  observer.observe(drawer.panels);
  scope.defer(() => observer.disconnect());
  scope.watch(() => pace.request(), chart.revision);
  scope.watch(() => isOfWindow.checked && pace.request(), time.range);
  scope.watch(() => {
    isOfWindow.checked = measured.value !== undefined;
    again();
  }, measured);
  return { scope, refresh };
}

interface TableTools {
  readonly tools: HTMLElement;
  readonly isOfWindow: HTMLInputElement;
}

/** A filter of rows, the choice of the window, and a button that copies what is shown. */
function tableTools(scope: Scope, drawer: Drawer, chart: ChartContext): TableTools {
  const tools = element("div", "gpuviz-tools");
  const filter = element("input", "gpuviz-tools__filter", {
    placeholder: "Filter",
    ariaLabel: "Filter rows",
  });
  const label = element("label", "gpuviz-tools__window", { title: WINDOW_HINT });
  const isOfWindow = element("input", "gpuviz-check", { type: "checkbox" });
  label.append(isOfWindow, "only the window");
  const copy = actionButton(scope, "CSV", "Copy all rows with exact numbers", () => {
    const shown = [...drawer.panels.querySelectorAll<HTMLElement>(".gpuviz-scroll")];
    const texts = shown.filter((each) => each.checkVisibility()).map((each) => csvOf(each));
    copyText(texts.join("\n"));
    chart.say("Copied.");
  });
  copy.ariaLabel = "Copy as CSV";
  tools.append(filter, label, copy);
  scope.append(drawer.tools, tools);
  scope.listen(filter, "input", () => {
    chart.filter.value = filter.value.trim().toLowerCase();
  });
  return { tools, isOfWindow };
}
