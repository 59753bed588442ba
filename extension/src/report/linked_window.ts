import type { Scope } from "../base/scope.ts";
import { isShownWindow, showWindow } from "../base/shown_window.ts";
import type { TimeWindow } from "../view/time_window.ts";

/** In a page with several reports: reports which time is shown, and shows the time that the page sends. */
export function followPage(scope: Scope, shown: TimeWindow): void {
  const page = window.parent;
  if (document.documentElement.dataset["linked"] === undefined || page === window) {
    return;
  }
  let isLed = false;
  scope.watch(() => {
    if (!isLed) {
      const { fromNs, toNs } = shown.range.value;
      showWindow(page, [fromNs, toNs]);
    }
  }, shown.range);
  const follow = ({ source, data }: MessageEvent<unknown>): void => {
    if (source === page && isShownWindow(data)) {
      isLed = true;
      shown.show(...data.gpuvizWindow);
      isLed = false;
    }
  };
  window.addEventListener("message", follow);
  scope.defer(() => window.removeEventListener("message", follow));
}
