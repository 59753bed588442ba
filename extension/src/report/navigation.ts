import type { Scope } from "../base/scope.ts";
import { actionButton, element } from "../view/dom.ts";

/** Buttons that lead to the sections of the page, made from their headings. */
export function showNavigation(scope: Scope, device: number): void {
  const bar = element("nav", "gpuviz-navigation", { ariaLabel: "Sections" });
  for (const section of document.querySelectorAll<HTMLElement>(
    `[data-device="${device}"] .gpuviz-section:not([hidden]), #gpuviz-environment`,
  )) {
    const heading = section.querySelector<HTMLElement>(":scope > h3");
    const title = heading?.textContent ?? "";
    if (title !== "" && title !== "Selected") {
      const go = actionButton(scope, title, `Go to: ${title}`, () => {
        section.scrollIntoView();
        section.tabIndex = -1;
        section.focus({ preventScroll: true });
      });
      bar.append(go);
    }
  }
  document.querySelector("header")?.append(bar);
  scope.defer(() => bar.remove());
}
