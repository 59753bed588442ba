import type { Scope } from "../base/scope.ts";

/** A new element with a class, and its text, which is taken literally, or more of its properties. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className: string,
  content: string | Partial<HTMLElementTagNameMap[K]> = "",
): HTMLElementTagNameMap[K] {
  const created = document.createElement(tag);
  created.className = className;
  return Object.assign(created, typeof content === "string" ? { textContent: content } : content);
}

export function button(label: string, title: string): HTMLButtonElement {
  const ariaLabel = label.length === 1 ? title : null;
  return element("button", "gpuviz-button", {
    textContent: label,
    type: "button",
    title,
    ariaLabel,
  });
}

/** A button that does something while a scope lasts. */
export function actionButton(
  scope: Scope,
  label: string,
  title: string,
  act: () => void,
): HTMLButtonElement {
  const created = button(label, title);
  scope.listen(created, "click", act);
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
