import { readEventLog, type EventLog } from "../model/event_log.ts";
import { Lanes } from "../model/lanes.ts";
import { readNames, type Names } from "../model/names.ts";
import { readStacks, type Stacks } from "../model/stacks.ts";
import { readWork, type Work } from "../model/work.ts";
import { decodeBase64 } from "../wire/base64.ts";
import { RecordingFile } from "../wire/recording_file.ts";

/** What the page's recording holds, for all devices. */
export interface Contents {
  readonly durationNs: number;
  readonly events: EventLog;
  readonly stacks: Stacks;
  readonly names: Names;
  readonly work: Work;
  readonly lanes: Lanes;
}

export async function readContents(embedded: HTMLElement | null): Promise<Contents> {
  const file = await RecordingFile.open(decodeBase64(embedded?.textContent ?? ""));
  embedded?.remove();
  const [events, stacks, names, work] = await Promise.all([
    readEventLog(file),
    readStacks(file),
    readNames(file),
    readWork(file),
  ]);
  const lanes = new Lanes(work, names);
  const durationNs = Math.max(file.durationNs, work.endNs);
  lanes.extend(durationNs);
  return { durationNs, events, stacks, names, work, lanes };
}
