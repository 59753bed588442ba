/** Draws again when the colours change: for printing, which is always light, and for dark mode. */
export function redrawForPrint(redraw: () => void): void {
  const root = document.documentElement;
  window.addEventListener("beforeprint", () => {
    root.classList.add("gpuviz-light");
    redraw();
  });
  window.addEventListener("afterprint", () => {
    root.classList.remove("gpuviz-light");
    redraw();
  });
  for (const wish of [
    "prefers-color-scheme: dark",
    "prefers-contrast: more",
    "forced-colors: active",
  ]) {
    window.matchMedia(`(${wish})`).addEventListener("change", redraw);
  }
}
