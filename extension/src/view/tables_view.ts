import { Scope } from "../base/scope.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";
import { fragmentationView } from "./fragmentation_view.ts";
import { Pace } from "./pace.ts";
import { sitesTable, sitesView } from "./sites_view.ts";
import type { TimeRange } from "./time_window.ts";
import { copiesTable, kernelsTable, synchronizationsTable } from "./gpu_tables.ts";

/** Shows everything received so far, in a time range or in all. */
export type ShowWindow = (window: TimeRange | undefined) => void;

interface Part {
  readonly title: string;
  readonly hint: string;
  readonly create: (scope: Scope, parent: HTMLElement, chart: ChartContext) => ShowWindow;
}

const SITES_TITLE = "Call sites of allocations";
const SITES_HINT =
  "By the innermost line outside installed packages; sizes are those of rounded blocks.";

/** The tables of memory while the recording goes on. */
export const LIVE_MEMORY: readonly Part[] = [
  { title: SITES_TITLE, hint: SITES_HINT, create: sitesTable },
];

/** The tables of memory of a whole recording. */
export const WHOLE_MEMORY: readonly Part[] = [
  {
    title: "Fragmentation",
    hint: "Unused reserved memory, over time and at the moment shown in the charts.",
    create: fragmentationView,
  },
  { title: SITES_TITLE, hint: SITES_HINT, create: sitesView },
];

const OF_GPU: readonly Part[] = [
  {
    title: "Kernels",
    hint: "By name; click one to show its longest launch in the charts.",
    create: kernelsTable,
  },
  { title: "Copies", hint: "By direction and kind of host memory.", create: copiesTable },
  {
    title: "Synchronizations",
    hint: "What blocked the host, by line, on all devices.",
    create: synchronizationsTable,
  },
];

/** Leaves 95 % of the page's time for other things. */
const PACE = { shortestMs: 500, rest: 20 };
const WINDOW_HINT =
  "Applies to call sites, kernels, copies and synchronizations. Kernels, copies and waits count with " +
  "their time in it, and the peak is the peak within it, as in recording.window(start, end).";

/** Tables of the data in the charts of one device; they are updated as the recording grows. */
export function tablesView(
  parent: HTMLElement,
  chart: ChartContext,
  ofMemory: readonly Part[],
): Scope {
  const scope = new Scope();
  const place = element("div", "gpuviz-tables");
  const label = element("label", "gpuviz-tables__window", " Only the time shown in the charts");
  const isOfWindow = element("input", "", { type: "checkbox" });
  label.prepend(isOfWindow);
  place.append(label, element("p", "gpuviz-section__hint", WINDOW_HINT));
  scope.append(parent, place);
  const { window: time } = chart.selection;
  const shown = new Map<Part, ShowWindow>();
  const sections = [...ofMemory, ...OF_GPU].map((part) => [part, sectionOf(part, place)] as const);
  const show = (): void => {
    const window = isOfWindow.checked && !time.isFull ? time.range.value : undefined;
    const hasMemory = chart.timeline.events.count > 0;
    const hasGpu = chart.gpu.activities.count + chart.gpu.apiCalls.count > 0;
    for (const [part, section] of sections) {
      section.hidden = !(ofMemory.includes(part) ? hasMemory : hasGpu);
      if (!section.hidden) {
        const showWindow = shown.get(part) ?? part.create(scope, section, chart);
        shown.set(part, showWindow);
        showWindow(window);
      }
    }
  };
  show();
  const pace = new Pace(place, PACE, show);
  scope.use(pace.scope);
  scope.listen(isOfWindow, "change", show);
  scope.watch(() => pace.request(), chart.revision);
  scope.watch(() => isOfWindow.checked && pace.request(), time.range);
  return scope;
}

function sectionOf({ title, hint }: Part, parent: HTMLElement): HTMLElement {
  const section = element("section", "gpuviz-section gpuviz-section--table");
  section.dataset["part"] = title.toLowerCase().replaceAll(" ", "-");
  section.append(
    element("h3", "gpuviz-section__title", title),
    element("p", "gpuviz-section__hint", hint),
  );
  parent.append(section);
  return section;
}
