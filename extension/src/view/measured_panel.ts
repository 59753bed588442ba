import { counted, formatBytes, formatDuration, formatShare, formatTime } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import { idleText } from "../model/idle_texts.ts";
import { measure, type Measurement } from "../model/measurement.ts";
import type { ChartContext } from "./chart_context.ts";
import { actionButton, element } from "./dom.ts";
import type { TimeRange } from "./time_window.ts";

const LONGEST_NAME = 60;

/**
 * The selected span: when it is, what happened in it, its name, and the spans that are kept.
 *
 * Returns a function that brings the keyboard to its name.
 */
export function measuredPanel(scope: Scope, parent: HTMLElement, chart: ChartContext): () => void {
  const { selection } = chart;
  const { measured, kept } = selection;
  const ariaLabel = `Measured ${chart.title}`.trim();
  const panel = element("div", "gpuviz-measured", { role: "region", ariaLabel });
  const text = element("p", "gpuviz-measured__title", { ariaLive: "polite" });
  const name = element("input", "gpuviz-measured__name", {
    placeholder: "Name (N)",
    ariaLabel: "Name of the span",
    maxLength: LONGEST_NAME,
  });
  const keep = actionButton(scope, "Keep", "Keep the span under this name, also in the link", () =>
    selection.keep(name.value.trim() || `span ${kept.value.length + 1}`),
  );
  const clear = actionButton(scope, "Clear", "Also: Escape", () => {
    measured.value = undefined;
  });
  scope.listen(name, "keydown", (event) => {
    if (event.key === "Enter") {
      keep.click();
    } else if (event.key === "Escape") {
      name.blur();
    }
    event.stopPropagation();
  });
  const list = element("dl", "gpuviz-measured__values");
  panel.append(text, name, keep, clear, list);
  const spans = element("div", "gpuviz-measured__kept", { role: "group", ariaLabel: "Kept spans" });
  scope.append(parent, panel, spans);
  scope.follow(() => {
    panel.hidden = measured.value === undefined;
    if (measured.value !== undefined) {
      const { fromNs, toNs } = measured.value;
      panel.setAttribute("data-from-ns", String(fromNs));
      panel.setAttribute("data-to-ns", String(toNs));
      const digits = (toNs - fromNs) / 1000;
      text.textContent = `${chart.title || "Measured"}: ${formatDuration(toNs - fromNs)} from ${formatTime(fromNs, digits)} to ${formatTime(toNs, digits)}`;
      list.replaceChildren(...valuesIn(measured.value, chart, true));
    }
  }, measured);
  scope.follow(
    (shown) => {
      const current = selection.keptSpan;
      name.value = current?.name ?? "";
      keep.textContent = current === undefined ? "Keep" : "Rename";
      spans.hidden = kept.value.length === 0;
      spans.replaceChildren(
        ...kept.value.map((span) => {
          const chip = element("span", "gpuviz-measured__chip");
          const label = `${span.name} · ${formatDuration(span.toNs - span.fromNs)}`;
          const show = actionButton(shown, label, "Show and select this span", () =>
            selection.showMeasured({ fromNs: span.fromNs, toNs: span.toNs }),
          );
          show.ariaPressed = String(span === current);
          const drop = actionButton(shown, "×", `Drop ${span.name}`, () => {
            kept.value = kept.value.filter((each) => each !== span);
          });
          chip.append(show, drop);
          return chip;
        }),
      );
    },
    kept,
    measured,
  );
  return () => {
    if (measured.value !== undefined) {
      name.focus();
      name.select();
    }
  };
}

/** What happened in a span, a term and its value each; in a part of the recording, also levels. */
export function valuesIn(
  { fromNs, toNs }: TimeRange,
  chart: ChartContext,
  isPart = false,
): HTMLElement[] {
  const found = measure(chart.timeline, chart.ownStreams, fromNs, toNs);
  return [...valuesOf(found, chart, isPart), ...idleIn(found, chart)].map(([term, value]) => {
    const entry = element("div", "");
    entry.append(element("dt", "", term), element("dd", "", value));
    return entry;
  });
}

type Values = (readonly [name: string, value: string])[];

/** Why nothing ran on the device. */
function idleIn({ fromNs, toNs }: Measurement, chart: ChartContext): Values {
  const causes = chart.idleOf()?.causesIn(fromNs, toNs);
  const text = causes === undefined ? "" : idleText(causes);
  return text === "" ? [] : [["GPU idle", text]];
}

/** The fewest bytes allocated, and the mean; of pinned memory also the most. */
function levelsOf(found: Measurement, { host }: ChartContext): Values {
  const { fromNs, toNs } = found;
  const of = ({ lowestBytes, meanBytes }: Measurement): Values => [
    ["lowest", formatBytes(lowestBytes)],
    ["mean", formatBytes(meanBytes)],
  ];
  if (!host.isRecorded) {
    return of(found);
  }
  const pinned = measure(host.timeline, [], fromNs, toNs);
  return [...of(found), ["peak pinned", formatBytes(pinned.peakBytes)], ...of(pinned)];
}

function valuesOf(found: Measurement, chart: ChartContext, isPart: boolean): Values {
  const { busy, fromNs, toNs } = found;
  const unseenNs = chart.gpu.unseen.timeIn(fromNs, toNs);
  const length = Math.max(toNs - fromNs - unseenNs, 1);
  const shareOf = (timeNs: number): string => formatShare(Math.min(timeNs / length, 1));
  const memory = [
    ["peak allocated", formatBytes(found.peakBytes)],
    ...(isPart ? levelsOf(found, chart) : []),
    [
      "allocated in it",
      `${formatBytes(found.allocatedBytes)} in ${counted(found.allocations, "block")}`,
    ],
  ] satisfies Values;
  if (busy === undefined) {
    return memory;
  }
  const overlap =
    busy.copyNs === 0
      ? "no such copies"
      : `${formatShare(busy.overlapNs / busy.copyNs)} of ${formatDuration(busy.copyNs)} of copying`;
  return [
    ...memory,
    ...(unseenNs > 0 ? [["streams not recorded", formatDuration(unseenNs)] as const] : []),
    ["GPU busy", `${shareOf(busy.busyNs)} (${formatDuration(busy.busyNs)})`],
    ["kernels", `${shareOf(busy.kernelNs)} (${formatDuration(busy.kernelNs)})`],
    ["host copies under kernels", overlap],
    ...(busy.deviceCopyNs === 0
      ? []
      : [["copies on the device", formatDuration(busy.deviceCopyNs)] as const]),
  ];
}
