import { isShownWindow, showWindow } from "../base/shown_window.ts";
import { otherTime, type Anchor } from "./linked_times.ts";

/** Lets the reports of a page, before and after, show the same part of the program. */
function link(): void {
  const frames = [...document.querySelectorAll<HTMLIFrameElement>("iframe")];
  const choice = document.querySelector<HTMLInputElement>("#gpuviz-linked");
  const text = document.getElementById("gpuviz-anchors")?.textContent ?? "[]";
  const anchors = JSON.parse(text) as readonly Anchor[];
  const shown: (readonly [number, number])[] = [];
  let leader: 0 | 1 = 0;

  const lead = (side: 0 | 1): void => {
    const times = shown[side];
    const other = frames[1 - side]?.contentWindow;
    if (choice?.checked === true && times !== undefined && other) {
      const [from, to] = times.map((time) => otherTime(anchors, side, time));
      showWindow(other, [from ?? 0, to ?? 0]);
    }
  };
  window.addEventListener("message", ({ source, data }: MessageEvent<unknown>) => {
    const side = frames.findIndex(({ contentWindow }) => contentWindow === source);
    if ((side === 0 || side === 1) && isShownWindow(data)) {
      leader = side;
      shown[side] = data.gpuvizWindow;
      lead(side);
    }
  });
  choice?.addEventListener("change", () => lead(leader));
}

link();
