import { formatDuration } from "../base/format.ts";
import { Scope } from "../base/scope.ts";
import { Conclusions } from "../model/conclusions.ts";
import { archiveIn, isPickle } from "../wire/file_bytes.ts";
import { RecordingFile } from "../wire/recording_file.ts";
import { notify } from "./notice.ts";

const SNAPSHOT =
  "This is a PyTorch memory snapshot, which this page cannot read. `gpuviz report snapshot.pickle` " +
  "writes a page that shows it.";
const OLDER =
  "This file lacks what this version of gpuviz derives, such as waits and idle times: `gpuviz " +
  "convert OLD.gpuviz NEW.gpuviz` adds it.";
const WITHOUT =
  "A recording alone has no findings here: `gpuviz report` writes a report, which has them.";

type Show = (scope: Scope, file: RecordingFile, conclusions: Conclusions) => Promise<void>;

/** Lets a reader choose or drop files, each of which is shown in place of the one before it. */
export function openViewer(show: Show): void {
  const drop = document.getElementById("gpuviz-drop");
  const choice = document.querySelector<HTMLInputElement>("#gpuviz-file");
  let shown = new Scope();
  const open = async (blob: Blob, name: string): Promise<void> => {
    notify("");
    try {
      const file = await recordingIn(blob);
      const conclusions = await Conclusions.of(file);
      shown.dispose();
      shown = new Scope();
      history.replaceState(null, "", location.pathname + location.search);
      addHead(file, name, (await file.table("devices")).texts("name").join(", "));
      // The choice stays for the next file.
      document.querySelector("header")?.append(...(choice?.labels ?? []));
      drop?.remove();
      await show(shown, file, conclusions);
      const notes = [
        ...(file.isClassified ? [] : [OLDER]),
        ...(conclusions.isEmpty ? [WITHOUT] : []),
      ];
      notify(notes.join(" "));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      notify(`${name} cannot be shown: ${reason}`);
      document.documentElement.dataset["gpuviz"] = "failed";
    }
  };
  const take = (files: FileList | null | undefined): void => {
    const [file] = files ?? [];
    if (file !== undefined) {
      void open(file, file.name);
    }
  };
  choice?.addEventListener("change", () => take(choice.files));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer?.files);
  });
}

async function recordingIn(blob: Blob): Promise<RecordingFile> {
  const source = {
    byteLength: blob.size,
    slice: async (from: number, to: number) =>
      new Uint8Array(await blob.slice(from, to).arrayBuffer()),
  };
  if (await isPickle(source)) {
    throw new Error(SNAPSHOT);
  }
  return RecordingFile.open(await archiveIn(source));
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
