import { formatDuration } from "../base/format.ts";
import { Scope } from "../base/scope.ts";
import { Conclusions } from "../model/conclusions.ts";
import { type ByteSource, sourceOfBase64 } from "../wire/byte_source.ts";
import { archiveIn, isPickle } from "../wire/file_bytes.ts";
import { RecordingFile } from "../wire/recording_file.ts";
import { readSnapshot } from "../wire/snapshot_reader.ts";
import { inflated } from "../wire/zip.ts";
import { notify } from "./notice.ts";

const SNAPSHOT =
  "this is a PyTorch memory snapshot, and this page was built without their reader. " +
  "`gpuviz report snapshot.pickle` writes a page that shows it.";
const OLDER =
  "This file lacks what this version of gpuviz derives, such as waits and idle times: `gpuviz " +
  "convert OLD.gpuviz NEW.gpuviz` adds it.";
/** What only Python concludes; the tabs of a report that are missing here. */
const ABSENT = "This page has no findings, no iterations, no what-if and no summary";

const without = (kind: Opened["kind"], name: string): string =>
  `${ABSENT}${kind === "snapshot" ? " of a snapshot" : ""}: \`gpuviz view ${name}\` shows them, and ` +
  `\`gpuviz report ${name}\` writes a report, which has them.`;

type Show = (scope: Scope, file: RecordingFile, conclusions: Conclusions) => Promise<void>;

/** Lets a reader choose or drop files, each of which is shown in place of the one before it. */
export function openViewer(show: Show): void {
  const drop = document.getElementById("gpuviz-drop");
  const choice = document.querySelector<HTMLInputElement>("#gpuviz-file");
  let shown = new Scope();
  let newest: File | undefined;
  const clear = (): void => {
    shown.dispose();
    shown = new Scope();
  };
  const open = async (chosen: File): Promise<void> => {
    const { name } = chosen;
    newest = chosen;
    notify(`Reading ${name}…`);
    try {
      const { file, kind, notes: own } = await recordingIn(chosen);
      const conclusions = await Conclusions.of(file);
      const devices = (await file.table("devices")).texts("name");
      if (newest !== chosen) {
        return;
      }
      clear();
      history.replaceState(null, "", location.pathname + location.search);
      addHead(file, name, devices.filter((device) => device !== "").join(", "));
      // The choice stays for the next file.
      document.querySelector("header")?.append(...(choice?.labels ?? []));
      drop?.remove();
      await show(shown, file, conclusions).catch((error: unknown) => {
        if (newest === chosen) {
          clear();
        }
        throw error;
      });
      const notes = [
        ...own,
        ...(file.isClassified ? [] : [OLDER]),
        ...(conclusions.isEmpty ? [without(kind, name)] : []),
      ];
      if (newest === chosen) {
        notify(notes.join(" "));
      }
    } catch (error) {
      if (newest !== chosen) {
        return;
      }
      const reason = error instanceof Error ? error.message : String(error);
      notify(`${name} cannot be shown: ${reason}`);
      document.documentElement.dataset["gpuviz"] = "failed";
    }
  };
  const take = (files: FileList | null | undefined): void => {
    const [file] = files ?? [];
    if (file !== undefined) {
      void open(file);
    }
  };
  choice?.addEventListener("change", () => {
    take(choice.files);
    // The same file chosen again, as after another run, would be no change.
    choice.value = "";
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer?.files);
  });
}

interface Opened {
  readonly file: RecordingFile;
  readonly kind: "recording" | "snapshot";
  readonly notes: readonly string[];
}

/** The recording in a file, and what the reader found missing in it. */
async function recordingIn(blob: Blob): Promise<Opened> {
  const source = {
    byteLength: blob.size,
    slice: async (from: number, to: number) =>
      new Uint8Array(await blob.slice(from, to).arrayBuffer()),
  };
  if (!(await isPickle(source))) {
    // The notes in a file may be a stranger's; those on a snapshot are the reader's own.
    const file = await RecordingFile.open(await archiveIn(source));
    return { file, kind: "recording", notes: [] };
  }
  const file = await snapshotIn(source);
  const { notes } = file.manifest;
  return { file, kind: "snapshot", notes: Array.isArray(notes) ? notes.map(String) : [] };
}

/** The recording in a PyTorch snapshot, read by the module that the page embeds. */
async function snapshotIn(source: ByteSource): Promise<RecordingFile> {
  const embedded = document.getElementById("gpuviz-snapshot-reader")?.textContent ?? "";
  if (embedded.trim() === "") {
    throw new Error(SNAPSHOT);
  }
  const packed = sourceOfBase64(embedded);
  return readSnapshot(await inflated(await packed.slice(0, packed.byteLength)), source);
}

/** Says in the head of the page what a file is about. */
function addHead(file: RecordingFile, name: string, devices: string): void {
  const title = document.querySelector("h1");
  const about = document.querySelector(".gpuviz-overview__text");
  const { created } = file.manifest;
  const facts = [
    devices,
    formatDuration(file.durationNs),
    String(created ?? "").replace(/^(.{10})T(.{8}).*$/, "$1 $2 UTC"),
  ];
  if (title !== null && about !== null) {
    title.textContent = name;
    about.textContent = facts.filter((fact) => fact !== "").join(" · ");
    document.title = name;
  }
}
