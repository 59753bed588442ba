/** A new element with a class, its text taken literally. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className: string,
  text = "",
): HTMLElementTagNameMap[K] {
  const created = document.createElement(tag);
  created.className = className;
  created.textContent = text;
  return created;
}

export function button(label: string, title: string): HTMLButtonElement {
  const created = element("button", "gpuviz-button", label);
  created.type = "button";
  created.title = title;
  if (label.length === 1) {
    created.ariaLabel = title;
  }
  return created;
}

export function context2d(
  canvas: HTMLCanvasElement,
  settings: CanvasRenderingContext2DSettings = {},
): CanvasRenderingContext2D {
  const context = canvas.getContext("2d", settings);
  if (context === null) {
    throw new Error("The browser gives no 2D drawing context.");
  }
  return context;
}
