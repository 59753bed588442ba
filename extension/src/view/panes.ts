import type { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import { element } from "./dom.ts";

const LEAST_PX = 44;
/** Of the whole height, so much at most is the least of a pane. */
const MOST_LEAST = "28%";
const KEY_STEP_PX = 16;

export interface Pane {
  readonly name: string;
  readonly root: HTMLElement;
  readonly isOpen: Signal<boolean>;
}

/** Parts that share a height, one above the other; each can be closed and resized. */
export class Panes {
  readonly root = element("div", "gpuviz-panes");
  /** What a reader has chosen, see `arrange`; undefined if nothing was changed. */
  readonly arrangement = new Signal<string | undefined>(undefined);
  readonly #scope: Scope;
  readonly list: Pane[] = [];

  constructor(scope: Scope, parent: HTMLElement) {
    this.#scope = scope;
    scope.append(parent, this.root);
  }

  /**
   * Adds a pane above another, or below all.
   *
   * `size` is its share of the height; a percentage is that part of the whole, and the others share
   * the rest.
   */
  add(name: string, label: string, size: number | string, isOpen = true, above?: string): Pane {
    const root = element("section", "gpuviz-pane", { ariaLabel: label });
    root.dataset["pane"] = name;
    const pane = { name, root, isOpen: new Signal(isOpen) };
    if (this.list.length > 0) {
      root.append(this.#handle(pane));
    }
    const below = this.list.find((each) => each.name === above);
    this.list.splice(below === undefined ? this.list.length : this.list.indexOf(below), 0, pane);
    this.root.insertBefore(root, below?.root ?? null);
    this.resize(pane, size);
    this.#scope.follow(() => {
      root.classList.toggle("gpuviz-pane--closed", !pane.isOpen.value);
    }, pane.isOpen);
    return pane;
  }

  /** Sets the share of a pane, unless a reader has arranged the panes. */
  resize(pane: Pane, size: number | string, leastPx = LEAST_PX, mostLeast = MOST_LEAST): void {
    if (this.arrangement.value === undefined) {
      setSize(pane, size);
      pane.root.style.setProperty(
        "--gpuviz-least-pane",
        `max(${LEAST_PX}px, min(${leastPx}px, ${mostLeast}))`,
      );
    }
  }

  /** Closes a pane while it would be lower than this, unless a reader has arranged the panes. */
  giveWay(pane: Pane, leastPx: number): void {
    let closedAtPx = 0;
    const observer = new ResizeObserver(() => {
      const roomPx = heightOf(this.root);
      if (this.arrangement.value !== undefined || pane.root.hidden) {
        return;
      }
      if (pane.isOpen.value && heightOf(pane.root) < leastPx) {
        closedAtPx = roomPx;
        pane.isOpen.value = false;
      } else if (!pane.isOpen.value && roomPx > closedAtPx + leastPx) {
        pane.isOpen.value = true;
      }
    });
    observer.observe(this.root);
    observer.observe(pane.root);
    this.#scope.defer(() => observer.disconnect());
  }

  toggle(pane: Pane): void {
    pane.isOpen.value = !pane.isOpen.value;
    const others = this.list.filter((each) => each !== pane);
    if (!pane.isOpen.value && others.every(({ root, isOpen }) => root.hidden || !isOpen.value)) {
      // Something must fill the height.
      others.forEach(({ isOpen }) => {
        isOpen.value = true;
      });
    }
    this.#remember();
  }

  /** Opens a pane that is closed; the lowest one, which is that of the details, makes room. */
  reveal(name: string, px: number): void {
    const pane = this.list.find((each) => each.name === name);
    if (pane === undefined || pane.root.hidden || pane.isOpen.value) {
      return;
    }
    const open = this.list.filter(({ root, isOpen }) => isOpen.value && !root.hidden);
    const heights = open.map(({ root }) => heightOf(root));
    const lowest = open.at(-1);
    const gained = px - heightOf(pane.root);
    pane.isOpen.value = true;
    open.forEach((each, place) =>
      setSize(each, Math.max((heights[place] ?? 0) - (each === lowest ? gained : 0), LEAST_PX)),
    );
    setSize(pane, px);
    this.#remember();
  }

  /** Closes all other panes, or opens them if they are closed. */
  maximize(pane: Pane): void {
    const others = this.list.filter((each) => each !== pane);
    const isAlone = others.every(({ root, isOpen }) => root.hidden || !isOpen.value);
    others.forEach(({ isOpen }) => {
      isOpen.value = isAlone;
    });
    pane.isOpen.value = true;
    this.#remember();
  }

  #remember(): void {
    this.arrangement.value = this.list
      .map(({ name, root, isOpen }) => `${name}-${isOpen.value ? heightOf(root) : 0}`)
      .join("_");
  }

  /** Moves the upper edge of a pane, which is the lower one of the next open pane above. */
  #move(pane: Pane, byPx: number): void {
    const open = this.list.filter(({ root, isOpen }) => isOpen.value && !root.hidden);
    const heights = open.map(({ root }) => heightOf(root));
    const below = open.indexOf(pane);
    const [above = 0, own = 0] = [heights[below - 1], heights[below]];
    const by = Math.min(Math.max(byPx, LEAST_PX - above), own - LEAST_PX);
    heights[below - 1] = above + by;
    heights[below] = own - by;
    if (below > 0) {
      open.forEach((each, place) => setSize(each, heights[place] ?? 0));
      this.#remember();
    }
  }

  #handle(pane: Pane): HTMLElement {
    const properties = { role: "separator", tabIndex: 0, ariaOrientation: "horizontal" };
    const handle = element("div", "gpuviz-pane__handle", properties);
    handle.ariaLabel = "Height; arrow keys change it";
    const say = (): void => {
      handle.ariaValueNow = String(heightOf(pane.root));
    };
    handle.ariaValueNow = "0";
    let fromY: number | undefined;
    const scope = this.#scope;
    scope.listen(handle, "pointerdown", (event) => {
      fromY = event.clientY;
      handle.setPointerCapture(event.pointerId);
    });
    scope.listen(handle, "pointermove", (event) => {
      if (fromY !== undefined) {
        const before = heightOf(pane.root);
        this.#move(pane, event.clientY - fromY);
        fromY += before - heightOf(pane.root);
      }
    });
    for (const end of ["pointerup", "pointercancel"] as const) {
      scope.listen(handle, end, () => {
        fromY = undefined;
      });
    }
    scope.listen(handle, "focus", say);
    scope.listen(handle, "keydown", (event) => {
      if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        event.preventDefault();
        this.#move(pane, event.key === "ArrowUp" ? -KEY_STEP_PX : KEY_STEP_PX);
        say();
      }
    });
    return handle;
  }
}

/** A percentage is the least that a pane gets; alone it gets all. */
export function setSize({ root }: Pane, size: number | string): void {
  root.style.removeProperty("--gpuviz-least-pane");
  root.style.flex = typeof size === "number" ? `${size} 1 0` : `1 1 ${size}`;
}

function heightOf(root: HTMLElement): number {
  return Math.round(root.getBoundingClientRect().height);
}
