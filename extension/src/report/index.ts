import "../view/theme.css";
import "../view/charts.css";
import "../view/controls.css";
import "../view/picked.css";
import "./report.css";

import { GrowingRecording } from "../model/growing_recording.ts";
import { readInto } from "../model/reading.ts";
import { deviceView, type DeviceView } from "../view/device_view.ts";
import { Frames } from "../view/frames.ts";
import { makeSortable } from "../view/sortable_table.ts";
import { sourceOfBase64 } from "../wire/byte_source.ts";
import { RecordingFile } from "../wire/recording_file.ts";
import { redrawForPrint } from "./print.ts";
import { showProgress } from "./progress.ts";

/** While the recording is read, what came is shown at most this often. */
const SHOW_EVERY_MS = 300;
/** Of the time that reading takes, at most about one part in so many goes into showing. */
const REST = 6;

/** Shows the parts of the page that belong to a device and draws its charts. */
class Report {
  readonly #frames = new Frames();
  readonly #recording: GrowingRecording;
  #device = 0;
  #view: DeviceView | undefined;
  #isWhole = false;

  constructor(recording: GrowingRecording) {
    this.#recording = recording;
  }

  show(device: number): void {
    this.#view?.scope.dispose();
    this.#view = undefined;
    this.#device = device;
    for (const part of document.querySelectorAll<HTMLElement>("[data-device]")) {
      part.hidden = Number(part.dataset["device"]) !== device;
    }
    this.#update();
  }

  /** Shows what has been read since. */
  follow(isWhole: boolean): void {
    this.#isWhole = isWhole;
    this.#update();
  }

  redraw(): void {
    this.#frames.redrawAll();
  }

  #update(): void {
    const charts = document.querySelector<HTMLElement>(`[data-charts="${this.#device}"]`);
    const isKnown = this.#recording.devices.includes(this.#device);
    if (charts === null) {
      return;
    }
    if (!isKnown) {
      charts.textContent = this.#isWhole ? "Nothing was recorded on this device." : "";
      return;
    }
    const contents = this.#recording.contentsOf(this.#device);
    if (this.#view === undefined) {
      this.#view = deviceView(charts, this.#frames, contents, document.body);
    } else {
      this.#view.update(contents);
    }
  }
}

/** Reads the recording in the page, and shows what has come now and then until all has. */
async function readAll(
  file: RecordingFile,
  recording: GrowingRecording,
  report: Report,
): Promise<void> {
  const progress = showProgress();
  let restUntilMs = 0;
  for await (const share of readInto(recording, file)) {
    const begin = performance.now();
    if (begin >= restUntilMs) {
      report.follow(false);
      progress.value = share;
      document.documentElement.dataset["gpuviz"] = "reading";
      const end = performance.now();
      restUntilMs = end + Math.max(REST * (end - begin), SHOW_EVERY_MS);
    }
  }
  report.follow(true);
  progress.done();
}

async function start(): Promise<void> {
  document.querySelectorAll<HTMLTableElement>("table[data-sortable]").forEach(makeSortable);
  const embedded = document.getElementById("gpuviz-recording");
  const file = await RecordingFile.open(sourceOfBase64(embedded?.textContent ?? ""));
  embedded?.remove();
  const recording = new GrowingRecording(file.initialEvents);
  const report = new Report(recording);
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
  await readAll(file, recording, report);
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
