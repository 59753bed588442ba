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
import { sourceOfBase64 } from "../wire/byte_source.ts";
import { RecordingFile } from "../wire/recording_file.ts";
import { NOWHERE, readAddress } from "./address.ts";
import { notify } from "./notice.ts";
import { redrawForPrint } from "./print.ts";
import { showProgress } from "./progress.ts";
import { Report } from "./report.ts";

/** Reads the recording in the page, and shows what has come now and then until all has. */
async function readAll(
  file: RecordingFile,
  recording: GrowingRecording,
  report: Report,
): Promise<void> {
  const reading = new Scope();
  const showShare = showProgress(reading);
  await readShowing(file, recording, (share) => {
    report.follow(false);
    showShare(share);
    document.documentElement.dataset["gpuviz"] = "reading";
  });
  report.follow(true);
  reading.dispose();
}

async function start(): Promise<void> {
  const embedded = document.getElementById("gpuviz-recording");
  const { address } = readAddress(`t=${embedded?.dataset["window"] ?? ""}`);
  const file = await RecordingFile.open(sourceOfBase64(embedded?.textContent ?? ""));
  embedded?.remove();
  const conclusions = await Conclusions.of(file);
  const recording = new GrowingRecording(file.initialEvents);
  const event = embedded?.dataset["moment"] === "end" ? Infinity : undefined;
  const report = new Report(recording, conclusions, { ...NOWHERE, window: address.window, event });
  report.showFragment();
  window.addEventListener("hashchange", () => report.showFragment());
  redrawForPrint(() => report.redraw());
  await readAll(file, recording, report);
  document.documentElement.dataset["gpuviz"] = "ready";
}

start().catch((error: unknown) => {
  const reason = error instanceof Error ? error.message : String(error);
  notify(`Cannot draw charts and tables: ${reason} The numbers on this page are complete.`);
  document.documentElement.dataset["gpuviz"] = "failed";
  document.documentElement.classList.remove("gpuviz-host");
});
