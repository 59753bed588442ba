import type { Scope } from "../base/scope.ts";

/** Draws again when the colours change: for printing, which is always light, and for dark mode. */
export function redrawForPrint(scope: Scope, redraw: () => void): void {
  const root = document.documentElement;
  const listen = (target: EventTarget, type: string, listener: () => void): void => {
    target.addEventListener(type, listener);
    scope.defer(() => target.removeEventListener(type, listener));
  };
  listen(window, "beforeprint", () => {
    root.classList.add("gpuviz-light");
    redraw();
    document.querySelectorAll("canvas").forEach(keepAsPixels);
  });
  listen(window, "afterprint", () => {
    root.classList.remove("gpuviz-light");
    redraw();
  });
  for (const wish of [
    "prefers-color-scheme: dark",
    "prefers-contrast: more",
    "forced-colors: active",
  ]) {
    listen(window.matchMedia(`(${wish})`), "change", redraw);
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
