import "../view/theme.css";
import "../view/charts.css";
import "../view/controls.css";
import "../view/picked.css";
import "../view/tables.css";
import "./report.css";
import "./print.css";

import { Scope } from "../base/scope.ts";
import { DeviceTimeline } from "../model/device_timeline.ts";
import { noMemoryEvents } from "../model/events.ts";
import type { ChartContext } from "../view/chart_context.ts";
import { deviceView } from "../view/device_view.ts";
import { Frames } from "../view/frames.ts";
import { makeSortable } from "../view/sortable_table.ts";
import { tablesView } from "../view/tables_view.ts";
import { NOWHERE, readAddress, writeAddress, type Address } from "./address.ts";
import { readContents, type Contents } from "./contents.ts";
import { followAddress, showAddress } from "./linked_view.ts";
import { showNavigation } from "./navigation.ts";
import { tell } from "./notice.ts";
import { redrawForPrint } from "./print.ts";

/** Shows the parts of the page that belong to a device and draws its charts. */
class Report {
  readonly #frames = new Frames();
  readonly #contents: Contents;
  readonly #choice = document.querySelector<HTMLSelectElement>("#gpuviz-device");
  readonly #initial: Address;
  #shown = new Scope();
  #chart: ChartContext | undefined;
  #device: number | undefined;

  constructor(contents: Contents, initial: Address) {
    this.#contents = contents;
    this.#initial = initial;
    this.#choice?.addEventListener("change", () => {
      this.#showDevice(Number(this.#choice?.value));
    });
    for (const each of document.querySelectorAll<HTMLButtonElement>("[data-show]")) {
      each.hidden = false;
      each.addEventListener("click", () => {
        const { address } = readAddress(`t=${each.dataset["show"] ?? ""}`);
        this.#chart?.selection.window.show(...(address.window ?? [0, 1]));
        document.querySelector(".gpuviz-section--controls")?.scrollIntoView();
      });
    }
  }

  /** Shows what the page's address points at, and tells what of it is not there. */
  showFragment(): void {
    const { address, bad } = readAddress(location.hash);
    const first = Number(document.querySelector<HTMLElement>("[data-device]")?.dataset["device"]);
    const choices = [...(this.#choice?.options ?? [])].map(({ value }) => Number(value));
    const device = address.device ?? first;
    const isKnown = address.device === undefined || choices.includes(device) || device === first;
    this.#showDevice(isKnown ? device : first);
    const wanted = address.window === undefined && address.selected === undefined;
    const place = wanted ? { ...address, window: this.#initial.window } : address;
    const missing = this.#chart === undefined ? [] : showAddress(this.#chart, place);
    const all = [...bad, ...(isKnown ? [] : [`device=${device}`]), ...missing];
    const parts = all.map((part) => `“${part}”`).join(", ");
    tell(all.length === 0 ? "" : `This link's ${parts} leads to nothing in this recording.`);
  }

  redraw(): void {
    this.#frames.redrawAll();
  }

  #showDevice(device: number): void {
    if (device === this.#device) {
      return;
    }
    this.#device = device;
    this.#shown.dispose();
    this.#shown = new Scope();
    this.#chart = undefined;
    for (const part of document.querySelectorAll<HTMLElement>("[data-device]")) {
      part.hidden = Number(part.dataset["device"]) !== device;
    }
    if (this.#choice !== null) {
      this.#choice.value = String(device);
    }
    const charts = document.querySelector<HTMLElement>(`[data-charts="${device}"]`);
    if (charts !== null) {
      this.#draw(charts, device);
    }
  }

  #draw(charts: HTMLElement, device: number): void {
    const { durationNs, ...contents } = this.#contents;
    const events = contents.events.ofDevice(device);
    if (events === undefined && !contents.lanes.devices.includes(device)) {
      charts.textContent = "Nothing was recorded on this device.";
      return;
    }
    const timeline = new DeviceTimeline(events ?? noMemoryEvents(), durationNs);
    const shown = { ...contents, device, timeline };
    const view = deviceView(charts, this.#frames, shown, document.body);
    this.#chart = view.chart;
    this.#shown.use(view.scope);
    const isOnly = this.#choice === null;
    this.#shown.use(followAddress(view.chart, isOnly ? undefined : device, remember));
    const delayed = window.setTimeout(() => {
      this.#shown.use(tablesView(charts, view.chart));
      this.#shown.use(showNavigation(device));
      document.documentElement.dataset["gpuvizTables"] = "ready";
    });
    this.#shown.defer(() => {
      window.clearTimeout(delayed);
    });
  }
}

/** Puts an address into the page's own, so that a copied link leads here. */
function remember(address: Address): void {
  try {
    history.replaceState(null, "", writeAddress(address) || location.pathname + location.search);
  } catch {
    // A page without an origin of its own, as in a sandboxed frame, has no address to change.
  }
}

async function start(): Promise<void> {
  document.querySelectorAll<HTMLTableElement>("table[data-sortable]").forEach(makeSortable);
  const embedded = document.getElementById("gpuviz-recording");
  const { address } = readAddress(`t=${embedded?.dataset["window"] ?? ""}`);
  const report = new Report(await readContents(embedded), { ...NOWHERE, window: address.window });
  report.showFragment();
  window.addEventListener("hashchange", () => {
    report.showFragment();
  });
  redrawForPrint(() => {
    report.redraw();
  });
  document.documentElement.dataset["gpuviz"] = "ready";
}

start().catch((error: unknown) => {
  const reason = error instanceof Error ? error.message : String(error);
  tell(`The charts and tables cannot be drawn: ${reason} The numbers on this page are whole.`);
  document.documentElement.dataset["gpuviz"] = "failed";
});
