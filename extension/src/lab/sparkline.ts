const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 120;
const HEIGHT = 28;

/** A small chart of bytes over time; the latest value is at the right edge. */
export function sparkline(label: string): {
  readonly node: SVGSVGElement;
  readonly draw: (values: readonly number[]) => void;
} {
  const node = document.createElementNS(SVG, "svg");
  node.setAttribute("class", "gpuviz-sparkline");
  node.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  node.setAttribute("preserveAspectRatio", "none");
  node.setAttribute("role", "img");
  node.setAttribute("aria-label", label);
  const area = document.createElementNS(SVG, "path");
  node.append(area);
  return {
    node,
    draw: (values) => area.setAttribute("d", outline(values)),
  };
}

/** The outline of steps between values above a common baseline. */
function outline(values: readonly number[]): string {
  const most = Math.max(...values, 1);
  const left = WIDTH - values.length;
  const steps = values.map((value, index) => {
    const y = (HEIGHT - 1) * (1 - value / most) + 1;
    return `L${left + index} ${y.toFixed(1)}H${left + index + 1}`;
  });
  return `M${left} ${HEIGHT}${steps.join("")}V${HEIGHT}Z`;
}
