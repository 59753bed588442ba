import type { Plot } from "./plot.ts";
import type { Tooltip } from "./tooltip.ts";

/** Shows the lines about what the pointer is at, until it leaves or the focus does. */
export function addHover(
  { scope, host }: Plot,
  tooltip: Tooltip,
  linesAt: (x: number, y: number) => readonly string[] | undefined,
): void {
  scope.listen(host, "pointermove", (event) => {
    const lines = linesAt(event.offsetX, event.offsetY);
    if (lines === undefined) {
      tooltip.hide();
    } else {
      tooltip.show(lines, event.clientX, event.clientY);
    }
  });
  for (const leave of ["pointerleave", "blur"] as const) {
    scope.listen(host, leave, () => tooltip.hide());
  }
}
