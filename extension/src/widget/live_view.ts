import { formatBytes, formatDuration } from "../base/format.ts";
import { Scope } from "../base/scope.ts";
import type { DeviceContents } from "../model/device_contents.ts";
import { deviceView, type DeviceView } from "../view/device_view.ts";
import { button, element } from "../view/dom.ts";
import { Frames } from "../view/frames.ts";
import { followHostTheme } from "../view/host_theme.ts";
import { Pace } from "../view/pace.ts";
import type { TimeRange } from "../view/time_window.ts";
import { tablesView } from "../view/tables_view.ts";
import { stateOf } from "./live_state.ts";
import { dashboardParts, drawerSections } from "./dashboard_parts.ts";
import type { Session, WidgetModel } from "./session.ts";

const STATE_EVERY_MS = 1000;
/** A page that is fast enough draws ten times a second. */
const PACE = { shortestMs: 95, rest: 6 };

/** One view of a widget: a line about the recording, and the charts of one of its devices. */
export class LiveView {
  readonly scope = new Scope();
  readonly #session: Session;
  readonly #model: WidgetModel;
  readonly #frames = new Frames();
  readonly #state = element("span", "gpuviz-live__state");
  readonly #counts = element("span", "gpuviz-live__counts");
  readonly #devices = element("select", "gpuviz-select");
  readonly #follow = button("Follow the end", "Follow the recording again");
  readonly #charts = element("div", "gpuviz-screen__charts");
  readonly #tooltips = element("div", "gpuviz-theme gpuviz-widget__tooltips");
  #view: DeviceView | undefined;
  /** The number of the recording that is shown. */
  #shown = 1;

  constructor(root: HTMLElement, session: Session, model: WidgetModel) {
    this.#session = session;
    this.#model = model;
    root.classList.add("gpuviz-theme", "gpuviz-widget", "gpuviz-host");
    keepKeys(root, this.scope);
    // What is above the charts takes nothing of their height.
    const screen = element("div", "gpuviz-screen gpuviz-screen--cell");
    const header = this.#header();
    screen.append(this.#charts);
    const show = (span: TimeRange): void => this.#view?.chart.selection.showMeasured(span);
    root.append(header, ...dashboardParts(this.scope, header, model, show), screen);
    document.body.append(this.#tooltips);
    this.scope.defer(() => {
      this.#view?.scope.dispose();
      this.#tooltips.remove();
      root.replaceChildren();
    });
    this.scope.use(followHostTheme([root, this.#tooltips], () => this.#frames.redrawAll()));
    root.tabIndex = -1;
    const pace = new Pace(root, PACE, () => {
      const hadFocus = root.contains(document.activeElement);
      this.#update();
      this.#frames.drawNow();
      // A chart that goes away must not leave the keys to the notebook.
      if (hadFocus && !root.contains(document.activeElement)) {
        root.focus({ preventScroll: true });
      }
    });
    this.scope.use(pace.scope);
    this.scope.defer(session.follower.revision.subscribe(() => pace.request()));
    const ticking = window.setInterval(() => this.#showState(), STATE_EVERY_MS);
    this.scope.defer(() => clearInterval(ticking));
    this.#showState();
    pace.request();
  }

  #header(): HTMLElement {
    const header = element("div", "gpuviz-live");
    this.#state.setAttribute("role", "status");
    this.#devices.setAttribute("aria-label", "Device");
    this.#devices.hidden = true;
    this.#follow.hidden = true;
    this.scope.listen(this.#devices, "change", () => {
      this.#view?.scope.dispose();
      this.#view = undefined;
      this.#update();
    });
    this.scope.listen(this.#follow, "click", () => this.#view?.window.showEnd());
    header.append(this.#state, this.#counts, this.#devices, this.#follow);
    return header;
  }

  #update(): void {
    const { recording, recordings, number } = this.#session.follower;
    this.#showState();
    if (recordings !== this.#shown) {
      this.#view?.scope.dispose();
      this.#view = undefined;
      this.#counts.textContent = "";
      this.#devices.replaceChildren();
      this.#shown = recordings;
    }
    if (number < 0) {
      return;
    }
    this.#listDevices(recording.devices);
    const device = Number(this.#devices.value || 0);
    const contents = recording.contentsOf(device);
    this.#showCounts(contents);
    if (this.#view === undefined) {
      const places = { charts: this.#charts, tooltips: this.#tooltips };
      this.#view = deviceView(places, this.#frames, contents, false);
      this.#view.scope.defer(this.#view.window.range.subscribe(() => this.#showFollow()));
      const { scope, drawer, chart } = this.#view;
      scope.use(tablesView(drawer, chart).scope);
      drawerSections(this.#view, this.#model, device);
    } else {
      this.#view.update(contents);
    }
    this.#showFollow();
  }

  #listDevices(devices: readonly number[]): void {
    const shown = [...this.#devices.options].map((option) => Number(option.value));
    if (shown.join() !== devices.join()) {
      const chosen = this.#devices.value;
      const { processes } = this.#session.follower.recording.gpu;
      const name = (device: number): string => processes.deviceName(device) ?? `GPU ${device}`;
      const options = devices.map((device) => new Option(name(device), String(device)));
      this.#devices.replaceChildren(...options);
      this.#devices.value = devices.includes(Number(chosen)) ? chosen : String(devices[0] ?? "");
      this.#devices.hidden = devices.length < 2;
    }
  }

  #showState(): void {
    const { name, text } = stateOf(this.#session);
    this.#state.dataset["state"] = name;
    if (this.#state.textContent !== text) {
      this.#state.textContent = text;
    }
  }

  #showCounts({ device, timeline, gpu }: DeviceContents): void {
    // What is drawn, which is ahead of the numbers; for those who measure how far.
    const { events } = timeline;
    this.#counts.dataset["events"] = String(events.count - events.initialCount);
    this.#counts.dataset["activities"] = String(gpu.activities.count);
    const { statistics } = this.#session.follower;
    if (statistics === undefined) {
      return;
    }
    const memory = statistics.devices.find((each) => each.device === device);
    this.#counts.textContent = [
      formatDuration(statistics.elapsedNs),
      ...(memory === undefined || events.count === 0
        ? []
        : [`${formatBytes(memory.allocated)} allocated, peak ${formatBytes(memory.peak)}`]),
      statistics.counts,
    ].join(" · ");
  }

  #showFollow(): void {
    const goesOn = this.#session.follower.isLive && !this.#session.isCut;
    this.#follow.hidden = !goesOn || (this.#view?.window.isAtEnd ?? true);
  }
}

/** JupyterLab's own keys, some of which delete cells, are not for those who press ours. */
function keepKeys(root: HTMLElement, scope: Scope): void {
  root.dataset["lmSuppressShortcuts"] = "true";
  scope.listen(root, "keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) {
      event.stopPropagation();
    }
  });
}
