/** Copies a text also where a page has no access to the clipboard, as over plain HTTP. */
export function copyText(text: string): void {
  const set = (event: ClipboardEvent): void => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
  };
  document.addEventListener("copy", set, { once: true });
  document.execCommand("copy");
}
