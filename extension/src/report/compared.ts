import { Scope } from "../base/scope.ts";
import type { Corresponding } from "../model/correspondence.ts";
import { GrowingRecording } from "../model/growing_recording.ts";
import { readInto } from "../model/reading.ts";
import { sectionsIn, type Section } from "../model/sections.ts";
import { comparedView } from "../view/compared_view.ts";
import { Frames } from "../view/frames.ts";
import { drawLines } from "../view/sections_view.ts";
import { ArrowTable } from "../wire/arrow.ts";
import { sourceOfBase64 } from "../wire/byte_source.ts";
import { RecordingFile } from "../wire/recording_file.ts";
import { readAddress } from "./address.ts";
import { followAddress, remember, showAddress } from "./linked_view.ts";
import { notify } from "./notice.ts";
import { redrawForPrint } from "./print.ts";
import { showProgress } from "./progress.ts";

/** The recording that the page embeds under an id. */
async function read(id: string, news: (share: number) => void): Promise<GrowingRecording> {
  const embedded = document.getElementById(id);
  const file = await RecordingFile.open(sourceOfBase64(embedded?.textContent ?? ""));
  embedded?.remove();
  const recording = new GrowingRecording(file.initialEvents);
  for await (const share of readInto(recording, file)) {
    news(share);
  }
  return recording;
}

/** The sections about both recordings, which the page also has for readers without scripts. */
function sectionsOfPage(): readonly Section[] {
  const text = document.getElementById("gpuviz-sections")?.textContent ?? "";
  const stream = Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0));
  return [...sectionsIn(new ArrowTable("sections", stream)).values()].flat();
}

/** Shows the two recordings of the page on aligned axes, one device at a time. */
async function start(): Promise<void> {
  const reading = new Scope();
  const showShare = showProgress(reading);
  const before = await read("gpuviz-before", (share) => showShare(share / 2));
  const after = await read("gpuviz-after", (share) => showShare((1 + share) / 2));
  reading.dispose();
  const found = JSON.parse(
    document.getElementById("gpuviz-corresponding")?.textContent ?? "",
  ) as Corresponding;
  const frames = new Frames();
  const charts = document.querySelector<HTMLElement>("[data-charts]");
  const controls = document.getElementById("gpuviz-controls");
  const sections = sectionsOfPage();
  document.getElementById("gpuviz-about")?.remove();
  const choice = document.querySelector<HTMLSelectElement>("#gpuviz-device");
  if (charts === null || controls === null) {
    return;
  }
  const first = Number(charts.dataset["charts"]);
  let shown = new Scope();
  const show = (device: number, fragment = location.hash): void => {
    shown.dispose();
    shown = new Scope();
    const places = { charts, controls, keys: document.body };
    const contents = [before.contentsOf(device), after.contentsOf(device)] as const;
    const view = comparedView(places, frames, contents, found);
    shown.use(view.scope);
    for (const { name, title, lines } of sections) {
      drawLines(shown, view.drawer.add(shown, name, title), lines, [], () => undefined);
    }
    view.drawer.prefer("changes");
    const { address } = readAddress(fragment);
    showAddress(view, address);
    followAddress(shown, view, choice === null ? undefined : device, remember);
  };
  const chosen = (fragment = location.hash): number =>
    readAddress(fragment).address.device ?? first;
  choice?.addEventListener("change", () => {
    remember({ ...readAddress("").address, device: Number(choice.value) });
    show(Number(choice.value));
  });
  if (choice !== null) {
    choice.value = String(chosen());
  }
  show(choice === null ? first : Number(choice.value));
  window.addEventListener("hashchange", ({ newURL }) => {
    const { hash } = new URL(newURL);
    show(chosen(hash), hash);
  });
  redrawForPrint(new Scope(), () => frames.redrawAll());
  document.documentElement.dataset["gpuviz"] = "ready";
}

start().catch((error: unknown) => {
  const reason = error instanceof Error ? error.message : String(error);
  notify(`Cannot draw charts: ${reason} The numbers on this page are complete.`);
  document.documentElement.dataset["gpuviz"] = "failed";
  document.documentElement.classList.remove("gpuviz-host");
});
