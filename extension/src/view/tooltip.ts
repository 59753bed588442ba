import type { Scope } from "../base/scope.ts";
import { element } from "./dom.ts";

const DISTANCE_PX = 14;

/** Lines of text beside the pointer. */
export class Tooltip {
  readonly #box = element("div", "gpuviz-tooltip", { hidden: true, role: "status" });

  constructor(scope: Scope, parent: HTMLElement) {
    scope.append(parent, this.#box);
  }

  /** Shows lines about what is under the pointer until the pointer or the focus leaves `host`. */
  attach(
    scope: Scope,
    host: HTMLElement,
    linesAt: (x: number, y: number) => readonly string[] | undefined,
  ): void {
    scope.listen(host, "pointermove", (event) => {
      const lines = linesAt(event.offsetX, event.offsetY);
      if (lines === undefined) {
        this.hide();
      } else {
        this.show(lines, event.clientX, event.clientY);
      }
    });
    for (const leave of ["pointerleave", "blur"] as const) {
      scope.listen(host, leave, () => this.hide());
    }
  }

  show(lines: readonly string[], clientX: number, clientY: number): void {
    this.#box.replaceChildren(
      ...lines.map((text, index) =>
        element("div", index === 0 ? "gpuviz-tooltip__title" : "gpuviz-tooltip__line", text),
      ),
    );
    this.#box.hidden = false;
    const { width, height } = this.#box.getBoundingClientRect();
    const fitsRight = clientX + DISTANCE_PX + width < window.innerWidth;
    const fitsBelow = clientY + DISTANCE_PX + height < window.innerHeight;
    const left = fitsRight ? clientX + DISTANCE_PX : clientX - DISTANCE_PX - width;
    const top = fitsBelow ? clientY + DISTANCE_PX : clientY - DISTANCE_PX - height;
    this.#box.style.left = `${Math.max(left, 4)}px`;
    this.#box.style.top = `${Math.max(top, 4)}px`;
  }

  hide(): void {
    this.#box.hidden = true;
  }
}
