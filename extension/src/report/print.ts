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
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}
