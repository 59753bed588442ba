import "../view/theme.css";
import "../view/charts.css";
import "../view/controls.css";
import "../view/selected.css";
import "../view/tables.css";
import "../view/whole_memory.css";
import "../view/findings.css";
import "../view/workbench.css";
import "./report.css";
import "./print.css";

import { Scope } from "../base/scope.ts";
import { Conclusions } from "../model/conclusions.ts";
import { GrowingRecording } from "../model/growing_recording.ts";
import { readShowing } from "../view/showing_reader.ts";
import { RecordingFile } from "../wire/recording_file.ts";
import { NOWHERE, readAddress, type Address } from "./address.ts";
import { EmbeddedBytes } from "./embedded_bytes.ts";
import { notify } from "./notice.ts";
import { redrawForPrint } from "./print.ts";
import { showProgress } from "./progress.ts";
import { Report } from "./report.ts";
import { openViewer } from "./viewer.ts";

/** Reads the recording in the page, and shows what has come now and then until all has. */
async function readAll(
  file: RecordingFile,
  recording: GrowingRecording,
  report: Report,
): Promise<void> {
  const reading = new Scope();
  const showShare = showProgress(reading);
  try {
    await readShowing(file, recording, (share) => {
      report.follow(false);
      showShare(share);
      document.documentElement.dataset["gpuviz"] = "reading";
    });
    report.follow(true);
  } finally {
    reading.dispose();
  }
}

/** The devices of a recording, and their titles. */
async function devicesOf(
  file: RecordingFile,
  { devices }: Conclusions,
): Promise<ReadonlyMap<number, string>> {
  if (devices !== undefined) {
    return devices;
  }
  const table = await file.table("devices");
  const names = table.texts("name");
  const ids = table.rows === 0 ? [0] : [...table.numbers("id")];
  // A snapshot of PyTorch has no names of devices.
  const titleOf = (id: number, name = ""): string =>
    `Device ${id}${name === "" ? "" : `: ${name}`}`;
  return new Map(ids.map((id, at) => [id, titleOf(id, names[at])]));
}

/** Shows a recording in place of what is in the page until the scope ends. */
async function show(
  scope: Scope,
  file: RecordingFile,
  conclusions: Conclusions,
  initial: Address = NOWHERE,
): Promise<void> {
  const recording = new GrowingRecording(file.initialEvents);
  const main = document.querySelector("main") ?? document.body;
  const devices = await devicesOf(file, conclusions);
  const report = new Report(scope, main, recording, conclusions, devices, initial);
  report.showFragment();
  // The page's own address may be what was shown when this event was sent.
  const follow = ({ newURL }: HashChangeEvent): void => report.showFragment(new URL(newURL).hash);
  window.addEventListener("hashchange", follow);
  scope.defer(() => window.removeEventListener("hashchange", follow));
  redrawForPrint(scope, () => report.redraw());
  await readAll(file, recording, report);
  document.documentElement.dataset["gpuviz"] = "ready";
}

async function start(): Promise<void> {
  const end = document.getElementById("gpuviz-recording-end");
  if (end === null) {
    openViewer(show);
    document.documentElement.dataset["gpuviz"] = "empty";
    return;
  }
  const { address } = readAddress(`t=${end.dataset["window"] ?? ""}`);
  const file = await RecordingFile.open(new EmbeddedBytes("gpuviz-recording", end));
  const event = end.dataset["moment"] === "end" ? Infinity : undefined;
  const initial = { ...NOWHERE, window: address.window, event };
  const main = document.querySelector("main");
  const fixed = [...(main?.childNodes ?? [])];
  try {
    await show(new Scope(), file, await Conclusions.of(file), initial);
  } catch (error) {
    main?.replaceChildren(...fixed);
    throw error;
  }
}

start().catch((error: unknown) => {
  const reason = error instanceof Error ? error.message : String(error);
  notify(`Cannot draw charts and tables: ${reason} The numbers on this page are complete.`);
  document.documentElement.dataset["gpuviz"] = "failed";
  document.documentElement.classList.remove("gpuviz-host");
});
