import { withCode } from "../view/dom.ts";

/** Shows a message at the head of the page instead of the one before; none if empty. */
export function notify(text: string): void {
  const notice = document.getElementById("gpuviz-notice");
  if (notice !== null) {
    notice.replaceChildren(...withCode(text));
    notice.hidden = text === "";
  }
}
