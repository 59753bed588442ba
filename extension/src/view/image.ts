import { clearedRaster, type Raster } from "../render/raster.ts";
import type { Drawing } from "./plot.ts";
import { context2d, element } from "./dom.ts";

/** A canvas of the size of a raster, with its pixels. */
export function canvasOf({ pixels, width, height }: Raster, className = ""): HTMLCanvasElement {
  const canvas = element("canvas", className, { width, height });
  const bytes = new Uint8ClampedArray(pixels.buffer);
  context2d(canvas).putImageData(new ImageData(bytes, width, height), 0, 0);
  return canvas;
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
