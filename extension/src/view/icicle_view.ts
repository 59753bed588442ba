import { formatShare } from "../base/format.ts";
import { Scope } from "../base/scope.ts";
import { visibleCalls, type Call } from "../model/icicle.ts";
import { shortFilename, siteText, type Frame } from "../model/stacks.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";

const ROW_PX = 21;
const LEAST_SHARE = 0.0015;
const COLOURS = 7;

/** What the width of a call stands for. */
export interface Measure {
  /** After an amount, as in `5 MiB allocated`. */
  readonly text: string;
  readonly format: (amount: number) => string;
  readonly exact: (amount: number) => string;
}

/**
 * A tree of calls, the root at the top, each as wide as what happened in it.
 *
 * A click shows a call in the whole width; the arrow keys go from call to call.
 */
export function icicleView(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
  root: Call,
  measure: Measure,
): void {
  const properties = { role: "group", ariaLabel: `Call stacks, ${measure.text}` };
  const box = element("div", "gpuviz-icicle", properties);
  scope.append(parent, box);
  const colours = coloursOf(root);
  const shown = new Scope();
  const show = (focus: Call, isChosen: boolean): void => {
    shown.dispose();
    const calls = [...ancestorsOf(focus), ...visibleCalls(focus, focus.amount * LEAST_SHARE)];
    const deepest = calls.reduce((depth, call) => Math.max(depth, call.depth), 0);
    box.style.height = `${(deepest + 1) * ROW_PX}px`;
    const buttons = calls.map((call) => {
      const created = callButton(call, focus, root, measure, colours);
      addTips(shown, created, chart, () => linesOf(call, root, measure));
      shown.listen(created, "click", () => show(call, true));
      return created;
    });
    addWalk(shown, box, calls, buttons);
    box.replaceChildren(...buttons);
    const chosen = buttons[calls.indexOf(focus)];
    chosen?.setAttribute("tabindex", "0");
    if (isChosen) {
      chosen?.focus();
    }
  };
  if (root.amount === 0) {
    box.replaceChildren(element("p", "gpuviz-section__hint", `Nothing ${measure.text} here.`));
  } else {
    show(root, false);
  }
  scope.defer(() => {
    shown.dispose();
    chart.tooltip.hide();
  });
}

function callButton(
  call: Call,
  focus: Call,
  root: Call,
  measure: Measure,
  colours: ReadonlyMap<string, number>,
): HTMLButtonElement {
  const created = element("button", "gpuviz-icicle__call", {
    textContent: textOf(call, root, measure),
    type: "button",
    tabIndex: -1,
    ariaLabel: linesOf(call, root, measure).join(", "),
  });
  const isAbove = call.depth < focus.depth;
  const from = isAbove ? 0 : (call.from - focus.from) / focus.amount;
  const width = isAbove ? 1 : call.amount / focus.amount;
  created.style.left = `${from * 100}%`;
  created.style.width = `${width * 100}%`;
  created.style.top = `${call.depth * ROW_PX}px`;
  const colour = call.frame === undefined ? undefined : colours.get(colourKey(call.frame));
  if (colour !== undefined) {
    created.classList.add(`gpuviz-icicle__call--${colour}`);
  }
  if (isAbove) {
    created.classList.add("gpuviz-icicle__call--above");
  }
  return created;
}

function textOf(call: Call, root: Call, measure: Measure): string {
  if (call === root) {
    return `${measure.format(root.amount)} ${measure.text}`;
  }
  if (call.frame === undefined) {
    return "no call stack";
  }
  const { name, filename, line } = call.frame;
  return filename === "" ? name : `${name} ${shortFilename(filename)}:${line}`;
}

function linesOf(call: Call, root: Call, measure: Measure): string[] {
  const share = formatShare(call.amount / Math.max(root.amount, 1));
  const head = `${measure.exact(call.amount)} ${measure.text}, ${share} of all`;
  if (call.frame === undefined) {
    return [call === root ? "All call stacks" : "No call stack was captured", head];
  }
  const source = call.frame.source.trim();
  const site = call.frame.filename === "" ? modulePath(call) : siteText(call.frame);
  return [site, ...(source === "" ? [] : [source]), head];
}

function modulePath(call: Call): string {
  return [...ancestorsOf(call), call].flatMap(({ frame }) => frame?.name ?? []).join(".");
}

/** A file, or a module's own name. */
function colourKey({ filename, name }: Frame): string {
  return filename || name;
}

function ancestorsOf(call: Call): Call[] {
  return call.parent === undefined ? [] : [...ancestorsOf(call.parent), call.parent];
}

/** A colour for each of the user's files, or for modules of one name, the outermost first. */
function coloursOf(root: Call): ReadonlyMap<string, number> {
  const colours = new Map<string, number>();
  const calls = visibleCalls(root, root.amount * LEAST_SHARE);
  for (const { frame } of calls.sort((left, right) => left.depth - right.depth)) {
    if (frame !== undefined && !frame.isInstalled && !colours.has(colourKey(frame))) {
      colours.set(colourKey(frame), colours.size % COLOURS);
    }
  }
  return colours;
}

function addTips(
  scope: Scope,
  target: HTMLElement,
  { tooltip }: ChartContext,
  lines: () => string[],
): void {
  tooltip.attach(scope, target, lines);
  scope.listen(target, "focus", () => {
    if (target.matches(":focus-visible")) {
      const { left, bottom } = target.getBoundingClientRect();
      tooltip.show(lines(), left, bottom);
    }
  });
}

/** Up goes to the caller, down to the largest call, left and right to the neighbours. */
function addWalk(
  scope: Scope,
  box: HTMLElement,
  calls: readonly Call[],
  buttons: readonly HTMLButtonElement[],
): void {
  scope.listen(box, "keydown", (event) => {
    const call = calls[buttons.findIndex((each) => each === document.activeElement)];
    const siblings = call?.parent?.children ?? [];
    const next = {
      ArrowUp: call?.parent,
      ArrowDown: call?.children[0],
      ArrowLeft: call && siblings[siblings.indexOf(call) - 1],
      ArrowRight: call && siblings[siblings.indexOf(call) + 1],
      Home: calls[0],
      Escape: calls[0],
    }[event.key];
    const target = next && buttons[calls.indexOf(next)];
    if (target === undefined) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Escape") {
      target.click();
      return;
    }
    target.focus();
  });
}
