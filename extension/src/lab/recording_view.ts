import "./style.css";

import type { TranslationBundle } from "@jupyterlab/translation";

import { formatCount, formatDuration } from "../base/format.ts";
import { Scope } from "../base/scope.ts";
import type { GroupedBy } from "../model/block_groups.ts";
import { Conclusions } from "../model/conclusions.ts";
import { GrowingRecording } from "../model/growing_recording.ts";
import { firstShown } from "../model/whole_time.ts";
import { deviceView, type DeviceView } from "../view/device_view.ts";
import { element } from "../view/dom.ts";
import { Frames } from "../view/frames.ts";
import { followHostTheme } from "../view/host_theme.ts";
import { showConclusions } from "../view/conclusions.ts";
import { readShowing } from "../view/showing_reader.ts";
import { CALL_STACKS, LIVE, tablesView } from "../view/tables_view.ts";
import type { ByteSource } from "../wire/byte_source.ts";
import { archiveIn, isPickle } from "../wire/file_bytes.ts";
import { RecordingFile } from "../wire/recording_file.ts";
import { canConvert } from "./conversion.ts";

/** Converts a recording that the browser cannot read, on the server. */
type Convert = () => Promise<ByteSource>;

/** A view of a file's recording, shown as soon as the first part is read. */
export class RecordingView {
  readonly scope = new Scope();
  readonly #words: TranslationBundle;
  readonly #colourBy: GroupedBy;
  readonly #frames = new Frames();
  readonly #keysFrom: HTMLElement;
  readonly #root = element("div", "gpuviz-theme gpuviz-widget gpuviz-host");
  readonly #screen = element("div", "gpuviz-screen");
  readonly #tooltips = element("div", "gpuviz-theme gpuviz-widget__tooltips");
  readonly #head = element("header", "gpuviz-recording__head");
  readonly #conclusions = element("div", "gpuviz-recording__conclusions");
  /** Has the place of the conclusions until they come. */
  readonly #awaited = element("p", "gpuviz-recording__awaited");
  readonly #devices = element("select", "gpuviz-select");
  readonly #charts = element("div", "gpuviz-screen__charts");
  #recording = new GrowingRecording();
  #shown = new Scope();
  #view: DeviceView | undefined;
  #said: Conclusions | undefined;
  #isWhole = false;

  /** `colourBy` is the initial colouring of blocks. */
  constructor(parent: HTMLElement, words: TranslationBundle, colourBy: GroupedBy) {
    this.#words = words;
    this.#colourBy = colourBy;
    this.#keysFrom = parent;
    this.#devices.setAttribute("aria-label", words.__("Device"));
    this.#devices.hidden = true;
    this.#screen.append(this.#head, this.#conclusions, this.#charts);
    this.#root.append(this.#screen);
    parent.append(this.#root);
    this.#awaited.setAttribute("role", "status");
    this.#awaited.textContent = words.__("Looking for findings …");
    document.body.append(this.#tooltips);
    this.scope.defer(() => {
      this.#shown.dispose();
      this.#root.remove();
      this.#tooltips.remove();
    });
    this.scope.use(followHostTheme([this.#root, this.#tooltips], () => this.#frames.redrawAll()));
    this.scope.listen(this.#devices, "change", () => this.#showDevice());
  }

  /** Reads a file, and calls `news` with the share that is shown. */
  async read(source: ByteSource, convert: Convert, news: (share: number) => void): Promise<void> {
    const file = await openRecording(source, convert);
    this.#recording = new GrowingRecording(file.initialEvents);
    this.#head.append(...factsOf(file.manifest, this.#words));
    await readShowing(file, this.#recording, (share) => {
      this.#update();
      this.#frames.drawNow();
      news(share);
    });
    this.#isWhole = true;
    this.#update();
    const { eventCount, gpu } = this.#recording;
    const counts = this.#words.__(
      "%1: %2 memory events, %3 GPU activities",
      formatDuration(Math.max(file.durationNs, gpu.endNs)),
      formatCount(eventCount),
      formatCount(gpu.activities.count),
    );
    this.#head.append(element("p", "gpuviz-recording__counts", counts), this.#devices);
  }

  /** Shows the conclusions in the archive that is made meanwhile. */
  async readConclusions(made: Promise<RecordingFile>): Promise<void> {
    try {
      this.#said = await Conclusions.of(await made);
    } finally {
      this.#awaited.remove();
    }
    this.#adopt();
  }

  /** Shows the conclusions about the device that is shown. */
  #adopt(): void {
    if (this.#view !== undefined && this.#said !== undefined) {
      showConclusions(this.#shown, this.#view, this.#said, this.#device, this.#conclusions);
      const { chart, window } = this.#view;
      const first = firstShown(chart.contents, this.#said.iterations(this.#device));
      if (first !== undefined && window.isFull) {
        window.show(...first);
      }
    }
  }

  #update(): void {
    const { devices } = this.#recording;
    if (devices.length !== this.#devices.options.length) {
      const { value } = this.#devices;
      const { processes } = this.#recording.gpu;
      const name = (device: number): string =>
        processes.deviceName(device) ?? this.#words.__("Device %1", device);
      this.#devices.replaceChildren(...devices.map((id) => new Option(name(id), String(id))));
      this.#devices.value =
        devices.includes(Number(value)) && value !== "" ? value : String(devices[0]);
      this.#devices.hidden = devices.length < 2;
    }
    if (devices.length === 0) {
      this.#charts.textContent = this.#isWhole ? this.#words.__("The recording is empty.") : "";
    } else if (this.#view === undefined) {
      this.#showDevice();
    } else {
      this.#view.update(this.#recording.contentsOf(this.#device));
    }
    if (this.#isWhole && this.#view !== undefined) {
      this.#showTables(this.#view);
    }
  }

  get #device(): number {
    return Number(this.#devices.value);
  }

  #showDevice(): void {
    this.#shown.dispose();
    this.#shown = new Scope();
    this.#charts.replaceChildren();
    const contents = this.#recording.contentsOf(this.#device);
    const places = {
      charts: this.#charts,
      controls: this.#head,
      keys: this.#keysFrom,
      tooltips: this.#tooltips,
    };
    const view = deviceView(places, this.#frames, contents);
    this.#shown.use(view.scope);
    view.chart.grouping.choose(this.#colourBy, contents);
    const isSwitched = this.#view !== undefined;
    if (!isSwitched && canConvert) {
      this.#conclusions.append(this.#awaited);
    }
    this.#view = view;
    if (this.#isWhole && isSwitched) {
      this.#showTables(view);
      this.#adopt();
    }
  }

  #showTables({ drawer, chart }: DeviceView): void {
    this.#shown.use(tablesView(drawer, chart, [...LIVE, CALL_STACKS]).scope);
  }
}

/**
 * The recording in a file, whose format is detected from its first bytes.
 *
 * If the server cannot convert files, a file of an older gpuviz is shown without conversion.
 */
async function openRecording(file: ByteSource, convert: Convert): Promise<RecordingFile> {
  if (await isPickle(file)) {
    return RecordingFile.open(await convert());
  }
  const recording = await RecordingFile.open(await archiveIn(file));
  return recording.isClassified || !canConvert ? recording : RecordingFile.open(await convert());
}

/** The main facts of a recording: the program, the time, and anything unusual. */
function factsOf(
  manifest: Readonly<Record<string, unknown>>,
  words: TranslationBundle,
): HTMLElement[] {
  const facts: HTMLElement[] = [];
  const { program, created, label, notes, complete, dropped } = manifest;
  const texts = Array.isArray(program) ? program.map(String) : [];
  const what = [texts.join(" "), typeof created === "string" ? when(created) : ""].filter(Boolean);
  if (what.length > 0) {
    facts.push(element("p", "gpuviz-recording__program", what.join(" · ")));
  }
  const warnings = [
    ...(typeof label === "string" && label !== "" ? [label] : []),
    ...(typeof dropped === "number" && dropped > 0
      ? [words.__("%1 events were dropped because buffers were full.", dropped)]
      : []),
    ...(complete === false ? [words.__("The recording was not stopped properly.")] : []),
    ...(Array.isArray(notes) ? notes.map(String) : []),
  ];
  return [...facts, ...warnings.map((text) => element("p", "gpuviz-recording__note", text))];
}

function when(created: string): string {
  const date = new Date(created);
  return Number.isNaN(date.getTime()) ? created : date.toLocaleString();
}
