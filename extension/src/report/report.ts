import { Scope } from "../base/scope.ts";
import type { Conclusions } from "../model/conclusions.ts";
import type { GrowingRecording } from "../model/growing_recording.ts";
import { deviceView, type DeviceView } from "../view/device_view.ts";
import { Frames } from "../view/frames.ts";
import { adoptSections, showConclusions } from "../view/conclusions.ts";
import { tablesView, WHOLE_MEMORY, type TablesView } from "../view/tables_view.ts";
import { NOWHERE, readAddress, type Address } from "./address.ts";
import { followAddress, remember, showAddress } from "./linked_view.ts";
import { notify } from "./notice.ts";

/** Shows the parts of the page that belong to a device and draws its charts. */
export class Report {
  readonly #frames = new Frames();
  readonly #recording: GrowingRecording;
  readonly #conclusions: Conclusions;
  readonly #choice = document.querySelector<HTMLSelectElement>("#gpuviz-device");
  readonly #initial: Address;
  #shown = new Scope();
  #view: DeviceView | undefined;
  #device: number | undefined;
  #isWhole = false;
  #isGone = false;
  #tables: TablesView | undefined;

  /** `initial` is shown where the page's address names no place; all goes with the scope. */
  constructor(
    scope: Scope,
    recording: GrowingRecording,
    conclusions: Conclusions,
    initial: Address,
  ) {
    this.#recording = recording;
    this.#conclusions = conclusions;
    this.#initial = initial;
    this.#choice?.addEventListener("change", () => this.#choose(Number(this.#choice?.value)));
    scope.defer(() => {
      this.#isGone = true;
      this.#shown.dispose();
    });
  }

  /** Shows what has been read since; links and tables wait for the whole. */
  follow(isWhole: boolean): void {
    if (this.#isGone) {
      return;
    }
    this.#isWhole = isWhole;
    this.#update();
    if (isWhole) {
      this.#complete();
      this.showFragment();
    }
  }

  /** Shows what the page's address points at, and names what of it is missing. */
  showFragment(): void {
    const { address, bad } = readAddress(location.hash);
    const first = Number(document.querySelector<HTMLElement>("[data-device]")?.dataset["device"]);
    const choices = [...(this.#choice?.options ?? [])].map(({ value }) => Number(value));
    const device = address.device ?? first;
    const isKnown = address.device === undefined || choices.includes(device) || device === first;
    this.#showDevice(isKnown ? device : first);
    if (!this.#isWhole) {
      return;
    }
    const isPlace = address.window !== undefined || address.selected !== undefined;
    const last = (this.#view?.chart.timeline.events.count ?? 1) - 1;
    const initial = this.#initial.event && Math.min(this.#initial.event, last);
    const place = {
      ...address,
      window: isPlace ? address.window : this.#initial.window,
      event: address.event ?? initial,
    };
    const missing = this.#view === undefined ? [] : showAddress(this.#view, place);
    const all = [...bad, ...(isKnown ? [] : [`device=${device}`]), ...missing];
    const parts = all.map((part) => `“${part}”`).join(", ");
    notify(all.length === 0 ? "" : `This link's ${parts} cannot be found in this recording.`);
  }

  redraw(): void {
    this.#tables?.refresh();
    this.#frames.redrawAll();
  }

  /** Shows another device at the same time, and leads links there. */
  #choose(device: number): void {
    const before = this.#view?.window;
    const { fromNs, toNs } = before?.range.value ?? { fromNs: 0, toNs: 0 };
    const window = before === undefined || before.isFull ? undefined : ([fromNs, toNs] as const);
    remember({ ...NOWHERE, device, window });
    this.#showDevice(device);
    if (window !== undefined) {
      this.#view?.window.show(...window);
    }
  }

  #showDevice(device: number): void {
    if (device === this.#device) {
      return;
    }
    this.#device = device;
    this.#shown.dispose();
    this.#shown = new Scope();
    this.#view = undefined;
    this.#tables = undefined;
    for (const part of document.querySelectorAll<HTMLElement>("[data-device]")) {
      part.hidden = Number(part.dataset["device"]) !== device;
    }
    if (this.#choice !== null) {
      this.#choice.value = String(device);
    }
    this.#update();
    if (this.#isWhole) {
      this.#complete();
    }
  }

  #update(): void {
    const device = this.#device ?? 0;
    const charts = document.querySelector<HTMLElement>(`[data-charts="${device}"]`);
    if (charts === null) {
      return;
    }
    if (!this.#recording.devices.includes(device)) {
      charts.textContent = this.#isWhole ? "No data was recorded on this device." : "";
      return;
    }
    const contents = this.#recording.contentsOf(device);
    if (this.#view === undefined) {
      const controls = document.getElementById("gpuviz-controls") ?? charts;
      const places = { charts, controls, keys: document.body };
      this.#view = deviceView(places, this.#frames, contents);
      this.#shown.use(this.#view.scope);
      const article = charts.closest("article") ?? charts;
      showConclusions(this.#shown, this.#view, this.#conclusions, device, article);
      adoptSections(this.#shown, this.#view, document.getElementById("gpuviz-about") ?? charts);
    } else {
      this.#view.update(contents);
    }
  }

  /** Adds to the charts of a whole recording what needs all of it. */
  #complete(): void {
    const device = this.#device ?? 0;
    const view = this.#view;
    if (view === undefined) {
      return;
    }
    const isOnly = this.#choice === null;
    followAddress(this.#shown, view, isOnly ? undefined : device, remember);
    const delayed = window.setTimeout(() => {
      this.#tables = tablesView(view.drawer, view.chart, WHOLE_MEMORY);
      this.#shown.use(this.#tables.scope);
      document.documentElement.dataset["gpuvizTables"] = "ready";
    });
    this.#shown.defer(() => window.clearTimeout(delayed));
  }
}
