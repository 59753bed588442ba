import type { TranslationBundle } from "@jupyterlab/translation";

import { formatBytes } from "../base/format.ts";
import type { DeviceTotals } from "./panel_messages.ts";

/** What a kernel was told of a device by NVML, and the path of the kernel's notebook. */
export interface ToldTotals {
  readonly device: DeviceTotals;
  readonly path: string;
}

/** How much of each GPU is in use and by whom; kernels of one machine tell of the same devices. */
export function totalsList(told: readonly ToldTotals[], words: TranslationBundle): HTMLElement[] {
  const devices = new Map(told.map(({ device }) => [device.uuid, device]));
  return [...devices.values()].map((device) => {
    const owners = new Map<number, string>();
    for (const { device: same, path } of told.filter((each) => each.device.uuid === device.uuid)) {
      for (const { pid, own } of same.processes) {
        if (own) {
          owners.set(pid, path);
        }
      }
    }
    return totalsOf(device, owners, words);
  });
}

function totalsOf(
  { name, total, used, processes }: DeviceTotals,
  owners: ReadonlyMap<number, string>,
  words: TranslationBundle,
): HTMLElement {
  const section = document.createElement("section");
  section.className = "gpuviz-card";
  const title = document.createElement("h3");
  title.textContent = name;
  const meter = document.createElement("meter");
  meter.max = total;
  meter.value = used;
  const text = words.__("%1 of %2 in use", formatBytes(used), formatBytes(total));
  meter.setAttribute("aria-label", text);
  const line = document.createElement("p");
  line.textContent = text;
  const list = document.createElement("ul");
  list.append(
    ...processes.map(({ pid, used: bytes }) => {
      const item = document.createElement("li");
      const size = bytes === null ? words.__("unknown") : formatBytes(bytes);
      item.textContent = `${owners.get(pid) ?? words.__("process %1", pid)}: ${size}`;
      return item;
    }),
  );
  section.append(title, meter, line, list);
  return section;
}
