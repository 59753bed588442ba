/** What reports in one page tell each other: which time they show, in ns since their start. */
interface ShownWindow {
  readonly gpuvizWindow: readonly [fromNs: number, toNs: number];
}

export function isShownWindow(data: unknown): data is ShownWindow {
  const times = (data as Partial<ShownWindow> | null)?.gpuvizWindow;
  return Array.isArray(times) && times.length === 2 && times.every(Number.isFinite);
}

/** Tells a page or frame which time is shown, or is to be shown. */
export function showWindow(target: Window, times: ShownWindow["gpuvizWindow"]): void {
  const message: ShownWindow = { gpuvizWindow: times };
  // A file has no origin that could be named; the message contains two times only.
  target.postMessage(message, "*");
}
