import { counted, formatBytes, formatDuration, formatShare, formatTime } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import { idleText } from "../model/gpu_description.ts";
import { measure, type Measurement } from "../model/measurement.ts";
import type { ChartContext } from "./chart_context.ts";
import { actionButton, element } from "./dom.ts";

/** Tells what happened in the window that a reader has measured. */
export function measuredPanel(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const { measured } = chart.selection;
  const spoken = { role: "region", ariaLabel: "Measured", ariaLive: "polite" };
  const panel = element("div", "gpuviz-measured", spoken);
  const text = element("p", "gpuviz-measured__title");
  const list = element("dl", "gpuviz-measured__values");
  const clear = actionButton(scope, "Clear", "Also: Escape", () => {
    measured.value = undefined;
  });
  panel.append(text, clear, list);
  parent.append(panel);
  const show = (): void => {
    panel.hidden = measured.value === undefined;
    if (measured.value !== undefined) {
      const { fromNs, toNs } = measured.value;
      const found = measure(chart.timeline, chart.ownStreams, fromNs, toNs);
      panel.dataset["fromNs"] = String(fromNs);
      panel.dataset["toNs"] = String(toNs);
      const digits = (toNs - fromNs) / 1000;
      text.textContent = `Measured: ${formatDuration(toNs - fromNs)} from ${formatTime(fromNs, digits)} to ${formatTime(toNs, digits)}`;
      list.replaceChildren(
        ...[...valuesOf(found), ...idleIn(found, chart)].map(([name, value]) => {
          const entry = element("div", "");
          entry.append(element("dt", "", name), element("dd", "", value));
          return entry;
        }),
      );
    }
  };
  scope.follow(show, measured);
}

type Values = (readonly [name: string, value: string])[];

/** Why nothing ran on the device. */
function idleIn({ fromNs, toNs }: Measurement, chart: ChartContext): Values {
  const causes = chart.idleOf()?.causesIn(fromNs, toNs);
  const text = causes === undefined ? "" : idleText(causes);
  return text === "" ? [] : [["GPU idle", text]];
}

function valuesOf(found: Measurement): Values {
  const { busy, fromNs, toNs } = found;
  const length = Math.max(toNs - fromNs, 1);
  const memory = [
    ["peak allocated", formatBytes(found.peakBytes)],
    [
      "allocated in it",
      `${formatBytes(found.allocatedBytes)} in ${counted(found.allocations, "block")}`,
    ],
  ] as const;
  if (busy === undefined) {
    return [...memory];
  }
  const overlap =
    busy.copyNs === 0
      ? "no such copies"
      : `${formatShare(busy.overlapNs / busy.copyNs)} of ${formatDuration(busy.copyNs)} of copying`;
  return [
    ...memory,
    ["GPU busy", `${formatShare(busy.busyNs / length)} (${formatDuration(busy.busyNs)})`],
    ["kernels", `${formatShare(busy.kernelNs / length)} (${formatDuration(busy.kernelNs)})`],
    ["host copies under kernels", overlap],
    ...(busy.deviceCopyNs === 0
      ? []
      : [["copies on the device", formatDuration(busy.deviceCopyNs)] as const]),
  ];
}
