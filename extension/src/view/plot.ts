import type { Scope } from "../base/scope.ts";
import { context2d, element } from "./dom.ts";
import type { Frames } from "./frames.ts";
import type { Theme } from "./theme.ts";

/** The plot area inside a canvas, in CSS pixels. */
export interface PlotArea {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export interface Drawing {
  readonly context: CanvasRenderingContext2D;
  readonly area: PlotArea;
  readonly theme: Theme;
  readonly pixelRatio: number;
}

export interface PlotOptions {
  readonly label: string;
  /** Of the plot area. */
  readonly heightPx: number;
  readonly marginsPx: {
    left: number;
    right: number;
    top: number;
    bottom: number;
  };
}

/** Clips drawing to the plot area, and `slackPx` above and below it, until `context.restore()`. */
export function saveAndClip({ context, area }: Drawing, slackPx = 0): void {
  context.save();
  context.beginPath();
  context.rect(area.left, area.top - slackPx, area.width, area.height + 2 * slackPx);
  context.clip();
}

/** How much of a narrow plot may lie left of its area. */
const LEFT_SHARE = 0.16;
const LEAST_LEFT_PX = 66;

/** A canvas for the drawing and one above it for what follows the pointer. */
export class Plot {
  readonly host: HTMLElement;
  readonly scope: Scope;
  readonly #base: HTMLCanvasElement;
  readonly #overlay: HTMLCanvasElement;
  readonly #frames: Frames;
  readonly #margins: PlotOptions["marginsPx"];
  #drawBase: (drawing: Drawing) => void = () => undefined;
  #drawOverlay: (drawing: Drawing) => void = () => undefined;

  constructor(scope: Scope, parent: HTMLElement, frames: Frames, options: PlotOptions) {
    this.scope = scope;
    const properties = { tabIndex: 0, role: "application", ariaLabel: options.label };
    this.host = element("div", "gpuviz-plot", properties);
    this.#base = element("canvas", "gpuviz-plot__canvas");
    this.#overlay = element("canvas", "gpuviz-plot__canvas gpuviz-plot__canvas--overlay");
    this.host.append(this.#base, this.#overlay);
    this.#frames = frames;
    this.#margins = options.marginsPx;
    this.setHeight(options.heightPx);
    scope.append(parent, this.host);
    const observer = new ResizeObserver(() => this.redraw());
    observer.observe(this.host);
    scope.defer(() => observer.disconnect());
    scope.defer(frames.add(this.#paintBase));
    scope.defer(frames.add(this.#paintOverlay));
  }

  onDraw(drawBase: (drawing: Drawing) => void, drawOverlay: (drawing: Drawing) => void): void {
    this.#drawBase = drawBase;
    this.#drawOverlay = drawOverlay;
    this.redraw();
  }

  get area(): PlotArea {
    const { right, top, bottom } = this.#margins;
    const { clientWidth, clientHeight } = this.host;
    const left = Math.min(this.#margins.left, Math.max(clientWidth * LEFT_SHARE, LEAST_LEFT_PX));
    return {
      left,
      top,
      width: Math.max(clientWidth - left - right, 1),
      height: Math.max(clientHeight - top - bottom, 1),
    };
  }

  /**
   * Sets the height of the plot area where it is free, and the least where others share it; returns
   * both with the margins.
   */
  setHeight(heightPx: number, leastPx = 0): readonly [heightPx: number, leastPx: number] {
    const { top, bottom } = this.#margins;
    const [whole, least] = [heightPx, leastPx].map((px) => px + top + bottom) as [number, number];
    this.host.style.setProperty("--gpuviz-height", `${whole}px`);
    this.host.style.setProperty("--gpuviz-least", `${least}px`);
    return [whole, least];
  }

  redraw(): void {
    this.#frames.request(this.#paintBase);
    this.redrawOverlay();
  }

  redrawOverlay(): void {
    this.#frames.request(this.#paintOverlay);
  }

  readonly #paintBase = (): void => this.#paint(this.#base, this.#drawBase);

  readonly #paintOverlay = (): void => this.#paint(this.#overlay, this.#drawOverlay);

  #paint(canvas: HTMLCanvasElement, draw: (drawing: Drawing) => void): void {
    if (this.host.clientHeight > 0) {
      draw(this.#prepare(canvas));
    }
  }

  #prepare(canvas: HTMLCanvasElement): Drawing {
    const pixelRatio = window.devicePixelRatio || 1;
    const width = Math.max(Math.round(this.host.clientWidth * pixelRatio), 1);
    const height = Math.max(Math.round(this.host.clientHeight * pixelRatio), 1);
    const context = context2d(canvas);
    if (canvas.width === width && canvas.height === height) {
      context.reset();
    } else {
      Object.assign(canvas, { width, height });
    }
    context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
    context.font = "12px system-ui, sans-serif";
    return { context, area: this.area, theme: this.#frames.themeAt(this.host), pixelRatio };
  }
}
