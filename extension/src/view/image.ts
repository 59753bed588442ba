import { clearedRaster, type Raster } from "../render/raster.ts";
import type { Drawing } from "./plot.ts";
import { context2d, element } from "./dom.ts";

/** A raster's canvas, with its pixels. */
interface Image {
  readonly canvas: HTMLCanvasElement;
  readonly data: ImageData;
}
const images = new WeakMap<Raster, Image>();

/** A canvas of the size of a raster, with its pixels; always the same for a raster. */
export function canvasOf(raster: Raster, className = ""): HTMLCanvasElement {
  const image = images.get(raster) ?? newImage(raster, className);
  context2d(image.canvas).putImageData(image.data, 0, 0);
  return image.canvas;
}

function newImage(raster: Raster, className: string): Image {
  const { pixels, width, height } = raster;
  const canvas = element("canvas", className, { width, height });
  const bytes = new Uint8ClampedArray(pixels.buffer);
  const image = { canvas, data: new ImageData(bytes, width, height) };
  images.set(raster, image);
  return image;
}

/** Puts a raster into the plot area; its transparent pixels let the grid show. */
export function paintImage(drawing: Drawing, raster: Raster): void {
  const { context, area } = drawing;
  context.drawImage(canvasOf(raster), area.left, area.top, area.width, area.height);
}

/** An empty raster with one pixel for each of the screen's in the plot area. */
export function rasterFor({ area, pixelRatio }: Drawing, before: Raster): Raster {
  const width = Math.max(Math.round(area.width * pixelRatio), 1);
  const height = Math.max(Math.round(area.height * pixelRatio), 1);
  return clearedRaster(before, width, height);
}
