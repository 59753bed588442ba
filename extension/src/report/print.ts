/** Draws again when the colours change: for printing, which is always light, and for dark mode. */
export function redrawForPrint(redraw: () => void): void {
  const root = document.documentElement;
  window.addEventListener("beforeprint", () => {
    root.classList.add("gpuviz-light");
    redraw();
    document.querySelectorAll("canvas").forEach(keepAsPixels);
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

/** Makes a canvas its own picture; Chromium prints what was drawn just before as commands, badly. */
function keepAsPixels(canvas: HTMLCanvasElement): void {
  const { width, height } = canvas;
  const context = canvas.getContext("2d");
  if (context !== null && width > 0 && height > 0) {
    const pixels = context.getImageData(0, 0, width, height);
    canvas.width = width;
    context.putImageData(pixels, 0, 0);
  }
}
