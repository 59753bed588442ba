import type { Scope } from "../base/scope.ts";

/** Creates an element with a class and either a text, taken literally, or properties. */
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

/** A button that calls `act` when it is clicked, until the scope is disposed of. */
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

/** An entry of a legend: a key with a colour or sign, and what it means. */
export function legendEntry(key: string, label: string): HTMLLIElement {
  const item = element("li", "gpuviz-legend__entry");
  item.title = label;
  item.append(element("span", `gpuviz-key ${key}`), label);
  return item;
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

/** A text in which what is between backquotes is code. */
export function withCode(text: string): (string | HTMLElement)[] {
  const parts = text.split(/`([^`]+)`/);
  return parts.map((part, at) => (at % 2 === 0 ? part : element("code", "gpuviz-code", part)));
}
