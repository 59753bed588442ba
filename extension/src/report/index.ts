import "../view/theme.css";
import "../view/charts.css";
import "../view/controls.css";
import "../view/picked.css";
import "./report.css";

import { Scope } from "../base/scope.ts";
import { DeviceTimeline } from "../model/device_timeline.ts";
import { readEventLog, type EventLog } from "../model/event_log.ts";
import { noMemoryEvents } from "../model/events.ts";
import { Lanes } from "../model/lanes.ts";
import { readNames, type Names } from "../model/names.ts";
import { readStacks, type Stacks } from "../model/stacks.ts";
import { readWork, type Work } from "../model/work.ts";
import { deviceView } from "../view/device_view.ts";
import { Frames } from "../view/frames.ts";
import { makeSortable } from "../view/sortable_table.ts";
import { decodeBase64 } from "../wire/base64.ts";
import { RecordingFile } from "../wire/recording_file.ts";
import { redrawForPrint } from "./print.ts";

interface Contents {
  readonly durationNs: number;
  readonly events: EventLog;
  readonly stacks: Stacks;
  readonly names: Names;
  readonly work: Work;
  readonly lanes: Lanes;
}

async function readContents(): Promise<Contents> {
  const embedded = document.getElementById("gpuviz-recording");
  const file = await RecordingFile.open(decodeBase64(embedded?.textContent ?? ""));
  embedded?.remove();
  const [events, stacks, names, work] = await Promise.all([
    readEventLog(file),
    readStacks(file),
    readNames(file),
    readWork(file),
  ]);
  const lanes = new Lanes(work, names);
  const durationNs = Math.max(file.durationNs, work.endNs);
  lanes.extend();
  return { durationNs, events, stacks, names, work, lanes };
}

/** Shows the parts of the page that belong to a device and draws its charts. */
class Report {
  readonly #frames = new Frames();
  readonly #contents: Contents;
  #shown = new Scope();

  constructor(contents: Contents) {
    this.#contents = contents;
  }

  show(device: number): void {
    this.#shown.dispose();
    this.#shown = new Scope();
    for (const part of document.querySelectorAll<HTMLElement>("[data-device]")) {
      part.hidden = Number(part.dataset["device"]) !== device;
    }
    const charts = document.querySelector<HTMLElement>(`[data-charts="${device}"]`);
    const events = this.#contents.events.ofDevice(device);
    if (charts === null) {
      return;
    }
    const { durationNs, ...contents } = this.#contents;
    if (events === undefined && !contents.lanes.devices.includes(device)) {
      charts.textContent = "Nothing was recorded on this device.";
      return;
    }
    const timeline = new DeviceTimeline(events ?? noMemoryEvents(), durationNs);
    this.#shown = deviceView(
      charts,
      this.#frames,
      { ...contents, device, timeline },
      document.body,
    ).scope;
  }

  redraw(): void {
    this.#frames.redrawAll();
  }
}

async function start(): Promise<void> {
  document.querySelectorAll<HTMLTableElement>("table[data-sortable]").forEach(makeSortable);
  const report = new Report(await readContents());
  const choice = document.querySelector<HTMLSelectElement>("#gpuviz-device");
  const first = document.querySelector<HTMLElement>("[data-device]");
  const show = (): void => {
    report.show(Number(choice?.value ?? first?.dataset["device"] ?? 0));
  };
  choice?.addEventListener("change", show);
  show();
  redrawForPrint(() => {
    report.redraw();
  });
  document.documentElement.dataset["gpuviz"] = "ready";
}

start().catch((error: unknown) => {
  const notice = document.getElementById("gpuviz-notice");
  if (notice !== null) {
    const reason = error instanceof Error ? error.message : String(error);
    notice.textContent = `The charts cannot be drawn: ${reason} The numbers and tables of this page are whole.`;
    notice.hidden = false;
  }
  document.documentElement.dataset["gpuviz"] = "failed";
});
