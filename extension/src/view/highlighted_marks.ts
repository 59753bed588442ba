import { saveAndClip, type Drawing, type PlotArea } from "./plot.ts";

const DIMMED = 0.6;
const LEAST_PX = 3;
const EDGE_PX = 1.5;
/** The edges of many smaller boxes would be all that is seen. */
const LEAST_SIDED_PX = 7;
const MANY = 20;

/** Dims the plot area but for what is highlighted, on a canvas that lies above the drawing. */
export function drawHighlighted(drawing: Drawing, boxes: readonly PlotArea[]): void {
  const { context, area, theme } = drawing;
  if (boxes.length === 0) {
    return;
  }
  saveAndClip(drawing);
  context.globalAlpha = DIMMED;
  context.fillStyle = theme.background;
  context.fillRect(area.left, area.top, area.width, area.height);
  context.globalAlpha = 1;
  const shown = boxes.map((box): PlotArea => {
    const width = Math.max(box.width, LEAST_PX);
    const height = Math.max(box.height, LEAST_PX);
    const [left, top] = [box.left - (width - box.width) / 2, box.top - (height - box.height) / 2];
    return { left, top, width, height };
  });
  for (const { left, top, width, height } of shown) {
    context.clearRect(left, top, width, height);
  }
  context.fillStyle = theme.text;
  for (const { left, top, width, height } of shown) {
    const side = width < LEAST_SIDED_PX ? 0 : EDGE_PX;
    const edge = height < LEAST_SIDED_PX && shown.length > MANY ? 0 : EDGE_PX;
    context.fillRect(left - side, top - edge, width + 2 * side, edge);
    context.fillRect(left - side, top + height, width + 2 * side, edge);
    context.fillRect(left - side, top, side, height);
    context.fillRect(left + width, top, side, height);
  }
  context.restore();
}
