// A page whose recording goes on; tests/browser/test_growing.py drives it.
import "../src/view/theme.css";
import "../src/view/charts.css";
import "../src/view/controls.css";
import "../src/view/picked.css";

import { DeviceTimeline } from "../src/model/device_timeline.ts";
import { EventLog } from "../src/model/event_log.ts";
import { Lanes } from "../src/model/lanes.ts";
import { readNames } from "../src/model/names.ts";
import { readStacks } from "../src/model/stacks.ts";
import { Work } from "../src/model/work.ts";
import type { DeviceContents } from "../src/model/device_contents.ts";
import { deviceView, type DeviceView } from "../src/view/device_view.ts";
import { Frames } from "../src/view/frames.ts";
import { decodeBase64 } from "../src/wire/base64.ts";
import { RecordingFile } from "../src/wire/recording_file.ts";

declare global {
  interface Window {
    takeRecording: (base64: string) => Promise<void>;
    closeView: () => void;
  }
}

const work = new Work();
const frames = new Frames();
let log: EventLog | undefined;
let lanes: Lanes | undefined;
const timeline = new DeviceTimeline();
let view: DeviceView | undefined;
let contents: DeviceContents | undefined;

/** Takes a recording, or what comes after those taken before. */
window.takeRecording = async (base64) => {
  const file = await RecordingFile.open(decodeBase64(base64));
  const [stacks, names] = await Promise.all([readStacks(file), readNames(file)]);
  log ??= new EventLog(file.initialEvents);
  log.append(await file.table("memory_events"));
  for (const name of Work.tableNames) {
    work.append(await file.tableIfAny(name));
  }
  const first = log.ofDevice(0);
  if (first === undefined) {
    throw new Error("Device 0 has no events.");
  }
  lanes ??= new Lanes(work, names);
  lanes.extend();
  timeline.extend(first, file.durationNs);
  contents ??= { device: 0, timeline, work, lanes, stacks, names };
  if (view === undefined) {
    view = deviceView(document.body, frames, contents);
  } else {
    view.update(contents);
  }
};

window.closeView = () => {
  view?.scope.dispose();
};
