// A page whose recording goes on; tests/browser/test_growing.py drives it.
import "../src/view/theme.css";
import "../src/view/charts.css";
import "../src/view/controls.css";
import "../src/view/selected.css";
import "../src/view/workbench.css";

import { GrowingRecording } from "../src/model/growing_recording.ts";
import { readInto } from "../src/model/reading.ts";
import { deviceView, type DeviceView } from "../src/view/device_view.ts";
import { Frames } from "../src/view/frames.ts";
import { sourceOfBase64 } from "../src/wire/byte_source.ts";
import { RecordingFile } from "../src/wire/recording_file.ts";

declare global {
  interface Window {
    takeRecording: (base64: string) => Promise<void>;
    closeView: () => void;
  }
}

const frames = new Frames();
let recording: GrowingRecording | undefined;
let view: DeviceView | undefined;

/** Takes a recording, or what comes after those taken before. */
window.takeRecording = async (base64) => {
  const file = await RecordingFile.open(sourceOfBase64(base64));
  recording ??= new GrowingRecording(file.initialEvents);
  const parts = readInto(recording, file);
  while ((await parts.next()).done !== true) {
    // Each is taken in; all are shown at once.
  }
  const contents = recording.contentsOf(0);
  if (view === undefined) {
    view = deviceView({ charts: document.body }, frames, contents);
  } else {
    view.update(contents);
  }
};

window.closeView = () => {
  view?.scope.dispose();
};
