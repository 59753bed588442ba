/** Tells something at the head of the page, in place of what was told before; nothing if empty. */
export function tell(text: string): void {
  const notice = document.getElementById("gpuviz-notice");
  if (notice !== null) {
    notice.textContent = text;
    notice.hidden = text === "";
  }
}
