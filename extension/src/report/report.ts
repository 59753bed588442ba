import { Scope } from "../base/scope.ts";
import type { Conclusions } from "../model/conclusions.ts";
import type { GrowingRecording } from "../model/growing_recording.ts";
import { firstShown } from "../model/whole_time.ts";
import { deviceView, type DeviceView } from "../view/device_view.ts";
import { Frames } from "../view/frames.ts";
import { showConclusions } from "../view/conclusions.ts";
import { element } from "../view/dom.ts";
import { valuesIn } from "../view/measured_panel.ts";
import { CALL_STACKS, LIVE, tablesView, type TablesView } from "../view/tables_view.ts";
import { NOWHERE, readAddress, type Address } from "./address.ts";
import { followAddress, remember, showAddress } from "./linked_view.ts";
import { notify } from "./notice.ts";
import { offerSpanCommand } from "./span_command.ts";

/** Shows a device of a recording in place of what is in the page. */
export class Report {
  readonly #frames = new Frames();
  readonly #recording: GrowingRecording;
  readonly #conclusions: Conclusions;
  readonly #main: HTMLElement;
  readonly #devices: readonly number[];
  readonly #choice = element("select", "gpuviz-select", {
    id: "gpuviz-device",
    ariaLabel: "Device",
  });
  readonly #title = element("h2", "");
  readonly #head = element("div", "");
  readonly #charts = element("div", "gpuviz-screen__charts");
  readonly #initial: Address;
  #shown = new Scope();
  #view: DeviceView | undefined;
  #device: number | undefined;
  #isWhole = false;
  #isGone = false;
  #tables: TablesView | undefined;

  /**
   * Shows the devices with these titles in an element of the page, until the scope ends.
   *
   * `initial` is shown where the page's address names no place.
   */
  constructor(
    scope: Scope,
    main: HTMLElement,
    recording: GrowingRecording,
    conclusions: Conclusions,
    devices: ReadonlyMap<number, string>,
    initial: Address,
  ) {
    this.#main = main;
    this.#recording = recording;
    this.#conclusions = conclusions;
    this.#devices = [...devices.keys()];
    this.#initial = initial;
    this.#choice.append(...[...devices].map(([id, title]) => new Option(title, String(id))));
    scope.listen(this.#choice, "change", () => this.#choose(Number(this.#choice.value)));
    if (devices.size > 1) {
      document.querySelector(".gpuviz-overview__text")?.after(this.#choice);
    }
    scope.defer(() => {
      this.#choice.remove();
      this.#isGone = true;
      this.#shown.dispose();
    });
  }

  /** Draws what has been read since; links and tables wait for the whole. */
  follow(isWhole: boolean): void {
    if (this.#isGone) {
      return;
    }
    this.#isWhole = isWhole;
    this.#update();
    if (isWhole) {
      this.#complete();
      this.showFragment();
    } else {
      this.#frames.drawNow();
    }
  }

  /** Shows what the page's address points at, and names what of it is missing. */
  showFragment(fragment = location.hash): void {
    const { address, bad } = readAddress(fragment);
    const [first = 0] = this.#devices;
    const device = address.device ?? first;
    const isKnown = address.device === undefined || this.#devices.includes(device);
    this.#showDevice(isKnown ? device : first);
    if (!this.#isWhole) {
      return;
    }
    const isPlace = address.window !== undefined || address.selected !== undefined;
    const last = (this.#view?.chart.timeline.events.count ?? 1) - 1;
    const initial = this.#initial.event && Math.min(this.#initial.event, last);
    const iterations = this.#conclusions.iterations(this.#device ?? first);
    const atFirst = this.#view && firstShown(this.#view.chart.contents, iterations);
    const place = {
      ...address,
      window: isPlace ? address.window : (this.#initial.window ?? atFirst),
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
    if (device === this.#device || this.#devices.length === 0) {
      return;
    }
    this.#device = device;
    this.#shown.dispose();
    this.#shown = new Scope();
    this.#view = undefined;
    this.#tables = undefined;
    this.#choice.value = String(device);
    const article = element("article", "");
    this.#title.textContent = this.#choice.selectedOptions[0]?.text ?? "";
    article.append(this.#title, this.#head, this.#charts);
    this.#main.replaceChildren(article);
    this.#update();
    if (this.#isWhole) {
      this.#complete();
    }
  }

  #update(): void {
    const device = this.#device;
    const charts = this.#charts;
    if (device === undefined) {
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
      offerSpanCommand(this.#shown, this.#view);
      showConclusions(this.#shown, this.#view, this.#conclusions, device, this.#head);
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
    if (this.#conclusions.isEmpty) {
      // Without conclusions from Python there are at least the totals of the recording.
      const sums = element("dl", "gpuviz-measured__values", { ariaLabel: "All of the recording" });
      sums.append(...valuesIn(view.window.full, view.chart));
      this.#head.replaceChildren(sums);
    }
    const isOnly = this.#devices.length < 2;
    followAddress(this.#shown, view, isOnly ? undefined : device, remember);
    const delayed = window.setTimeout(() => {
      this.#tables = tablesView(view.drawer, view.chart, [...LIVE, CALL_STACKS]);
      this.#shown.use(this.#tables.scope);
      document.documentElement.dataset["gpuvizTables"] = "ready";
    });
    this.#shown.defer(() => window.clearTimeout(delayed));
  }
}
