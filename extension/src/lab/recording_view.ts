import "./style.css";

import { Scope } from "../base/scope.ts";
import { DeviceTimeline } from "../model/device_timeline.ts";
import { readEventLog } from "../model/event_log.ts";
import { noMemoryEvents } from "../model/events.ts";
import { Lanes } from "../model/lanes.ts";
import { readNames } from "../model/names.ts";
import { readStacks } from "../model/stacks.ts";
import { readWork } from "../model/work.ts";
import { deviceView } from "../view/device_view.ts";
import { element } from "../view/dom.ts";
import { Frames } from "../view/frames.ts";
import { followHostTheme } from "../view/host_theme.ts";
import { archiveIn } from "../wire/file_bytes.ts";
import { RecordingFile } from "../wire/recording_file.ts";

/** Shows the recording in a file's bytes below `parent`. */
export async function showRecording(
  parent: HTMLElement,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<Scope> {
  const file = await RecordingFile.open(archiveIn(bytes));
  const [events, stacks, names, work] = await Promise.all([
    readEventLog(file),
    readStacks(file),
    readNames(file),
    readWork(file),
  ]);
  const lanes = new Lanes(work, names);
  const durationNs = Math.max(file.durationNs, work.endNs);
  lanes.extend(durationNs);
  const scope = new Scope();
  const frames = new Frames();
  const root = element("div", "gpuviz-theme gpuviz-widget");
  const tooltips = element("div", "gpuviz-theme gpuviz-widget__tooltips");
  parent.append(root);
  document.body.append(tooltips);
  scope.defer(() => {
    root.remove();
    tooltips.remove();
  });
  scope.use(
    followHostTheme([root, tooltips], () => {
      frames.redrawAll();
    }),
  );
  const device = events.devices[0] ?? lanes.devices[0] ?? 0;
  const timeline = new DeviceTimeline(events.ofDevice(device) ?? noMemoryEvents(), durationNs);
  const contents = { device, timeline, events, work, lanes, stacks, names };
  scope.use(deviceView(root, frames, contents, parent, tooltips).scope);
  return scope;
}
