import { clearedRaster, type Raster } from "../render/raster.ts";
import type { Drawing } from "./plot.ts";
import { context2d } from "./dom.ts";

/** Puts a raster into the plot area; its transparent pixels let the grid show. */
export function paintImage(drawing: Drawing, raster: Raster): void {
  const { context, area } = drawing;
  const sheet = document.createElement("canvas");
  sheet.width = raster.width;
  sheet.height = raster.height;
  const pixels = new Uint8ClampedArray(raster.pixels.buffer);
  context2d(sheet).putImageData(new ImageData(pixels, raster.width, raster.height), 0, 0);
  context.drawImage(sheet, area.left, area.top, area.width, area.height);
}

/** An empty raster with one pixel for each of the screen's in the plot area. */
export function rasterFor({ area, pixelRatio }: Drawing, before: Raster): Raster {
  const width = Math.max(Math.round(area.width * pixelRatio), 1);
  const height = Math.max(Math.round(area.height * pixelRatio), 1);
  return clearedRaster(before, width, height);
}
