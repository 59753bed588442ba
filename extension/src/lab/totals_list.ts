import type { TranslationBundle } from "@jupyterlab/translation";

import { formatBytes } from "../base/format.ts";
import { element } from "../view/dom.ts";
import type { SourcedDevice } from "./device_union.ts";
import type { ProcessUse } from "./panel_messages.ts";

/** The use of each GPU and its processes; machines are named if there are several. */
export function totalsList(
  devices: readonly SourcedDevice[],
  serverMachine: string | undefined,
  words: TranslationBundle,
): HTMLElement[] {
  const machines = new Set(devices.map(({ machine }) => machine));
  const isOne = machines.size <= 1 && (serverMachine === undefined || machines.has(serverMachine));
  return devices.map((told) => {
    const { machine } = told;
    const where =
      machine === serverMachine
        ? words.__("on %1, the Jupyter server", machine)
        : words.__("on %1", machine);
    return totalsOf(told, isOne ? "" : where, words);
  });
}

function totalsOf(
  { device, owners }: SourcedDevice,
  where: string,
  words: TranslationBundle,
): HTMLElement {
  const { name, processes } = device;
  const section = element("section", "gpuviz-device");
  const title = element("h3", "", name);
  title.title = name;
  const list = document.createElement("ul");
  const byUse = [...processes].sort((left, right) => (right.used ?? -1) - (left.used ?? -1));
  list.append(...byUse.map((process) => processItem(process, owners.get(process.pid), words)));
  section.append(title, ...(where === "" ? [] : [element("p", "gpuviz-device__where", where)]));
  section.append(...memoryOf(device, words), list);
  return section;
}

function memoryOf(device: SourcedDevice["device"], words: TranslationBundle): HTMLElement[] {
  const { total, used, sharesHostMemory = false } = device;
  if (total === 0) {
    return [element("p", "", words.__("Memory in use unknown"))];
  }
  const sizes = [formatBytes(used), formatBytes(total)];
  const text = sharesHostMemory
    ? words.__("%1 of %2 in use, shared with the CPU", ...sizes)
    : words.__("%1 of %2 in use", ...sizes);
  const meter = document.createElement("meter");
  meter.max = total;
  meter.value = used;
  meter.setAttribute("aria-label", text);
  return [meter, element("p", "", text)];
}

function processItem(
  { pid, used }: ProcessUse,
  path: string | undefined,
  words: TranslationBundle,
): HTMLElement {
  const item = document.createElement("li");
  const owner = path?.split("/").at(-1);
  const name = element("span", "gpuviz-device__owner", owner ?? words.__("process %1", pid));
  name.title = path ?? "";
  const size = used === null ? words.__("unknown") : formatBytes(used);
  const number = owner === undefined ? [] : [element("small", "", `(${pid})`)];
  item.append(name, ...number, element("span", "gpuviz-device__used", size));
  return item;
}
