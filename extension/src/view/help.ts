import type { Scope } from "../base/scope.ts";
import { actionButton, element } from "./dom.ts";

const KEYS = [
  ["Ctrl or ⌘ and wheel, W, S", "zoom in and out; in a chart with the focus also the wheel alone"],
  ["Drag", "select a span: all tables show its sums"],
  ["Ctrl or ⌘ and drag, drag in the overview", "zoom to the marked range"],
  ["Shift and drag, A, D, Shift and ← →", "earlier, later"],
  ["Double click, 0", "show the whole recording"],
  ["Click", "select; related items are highlighted"],
  ["[ and ]", "select the previous or next item in the same row"],
  ["Backspace", "return to the previous selection"],
  ["F", "zoom to the selection"],
  ["M", "select the span of the selection, or else of the time shown"],
  ["( and )", "begin and end of the span at the cursor"],
  ["N", "name and keep the selected span"],
  ["← →, Enter", "move the cursor; choose the moment, or select the item there"],
  ["↑ ↓", "choose a lane"],
  ["P, click on the name of a lane", "pin the lane above the others, or unpin it"],
  ["/", "search; Enter and Shift + Enter go from hit to hit, Escape to what is selected"],
  ["Escape", "clear the selection, then the span; in the source of a line, return to all lines"],
  ["?", "this help"],
] as const;

/** A dialog of keys and gestures; returns a function that opens or closes it. */
export function helpDialog(scope: Scope, parent: HTMLElement): () => void {
  const dialog = element("dialog", "gpuviz-help", { ariaLabel: "Keys and gestures" });
  const list = element("dl", "gpuviz-help__keys");
  for (const [keys, action] of KEYS) {
    list.append(element("dt", "", keys), element("dd", "", action));
  }
  const close = actionButton(scope, "Close", "Also: Escape", () => dialog.close());
  dialog.append(element("h3", "", "Keys and gestures"), list, close);
  scope.append(parent, dialog);
  return () => (dialog.open ? dialog.close() : dialog.showModal());
}
