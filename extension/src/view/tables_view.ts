import { Scope } from "../base/scope.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";
import { fragmentationView } from "./fragmentation_view.ts";
import { sitesView } from "./sites_view.ts";
import { copiesTable, kernelsTable, synchronizationsTable } from "./work_tables.ts";

interface Part {
  readonly title: string;
  readonly hint: string;
  readonly show: (parent: HTMLElement, chart: ChartContext) => Scope;
}

const OF_MEMORY: readonly Part[] = [
  {
    title: "Fragmentation",
    hint: "Unused reserved memory, over time and at the moment shown in the charts.",
    show: fragmentationView,
  },
  {
    title: "Call sites of allocations",
    hint: "By the innermost line outside installed packages; sizes are those of rounded blocks.",
    show: sitesView,
  },
];

const OF_WORK: readonly Part[] = [
  {
    title: "Kernels",
    hint: "By name; click one to show its longest launch in the charts.",
    show: kernelsTable,
  },
  { title: "Copies", hint: "By direction and kind of host memory.", show: copiesTable },
  {
    title: "Synchronizations",
    hint: "What blocked the host, by line, on all devices.",
    show: synchronizationsTable,
  },
];

/** The numbers behind the charts of one device as tables; they follow longer contents. */
export function tablesView(parent: HTMLElement, chart: ChartContext): Scope {
  const scope = new Scope();
  let shown = showParts(parent, chart);
  let waiting: number | undefined;
  scope.defer(
    chart.revision.subscribe(() => {
      window.clearTimeout(waiting);
      waiting = window.setTimeout(() => {
        shown.dispose();
        shown = showParts(parent, chart);
      });
    }),
  );
  scope.defer(() => {
    window.clearTimeout(waiting);
    shown.dispose();
  });
  return scope;
}

function showParts(parent: HTMLElement, chart: ChartContext): Scope {
  const scope = new Scope();
  const hasMemory = chart.timeline.events.count > 0;
  const hasWork = chart.work.activities.count + chart.work.apiCalls.count > 0;
  for (const part of [...(hasMemory ? OF_MEMORY : []), ...(hasWork ? OF_WORK : [])]) {
    const { title, hint, show } = part;
    const section = element("section", "gpuviz-section gpuviz-section--table");
    section.dataset["part"] = title.toLowerCase().replaceAll(" ", "-");
    section.append(
      element("h3", "gpuviz-section__title", title),
      element("p", "gpuviz-section__hint", hint),
    );
    scope.append(parent, section);
    scope.use(show(section, chart));
  }
  return scope;
}
