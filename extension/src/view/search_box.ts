import { formatCount } from "../base/format.ts";
import { Scope } from "../base/scope.ts";
import { search, type Hit as Found } from "../model/search.ts";
import type { ChartContext } from "./chart_context.ts";
import { actionButton, element } from "./dom.ts";
import { reveal } from "./selected_panel.ts";

const MOST_HITS = 50;
const NONE = -1;

interface Hit extends Found {
  readonly chart: ChartContext;
}

/**
 * A field that finds kernels, lines, addresses, ranges and cells, and selects what is chosen; Enter
 * goes from hit to hit.
 *
 * Returns a function that focuses the field.
 */
export function searchBox(
  scope: Scope,
  parent: HTMLElement,
  charts: readonly ChartContext[],
): () => void {
  const box = element("div", "gpuviz-search");
  const field = element("input", "gpuviz-search__field", {
    type: "search",
    placeholder: "Search (/)",
    ariaLabel: "Search kernels, lines, addresses, ranges and cells",
  });
  const found = element("div", "gpuviz-search__hits", { role: "status", hidden: true });
  // Safari gives the focus to what is around a pressed button.
  found.tabIndex = -1;
  const place = element("span", "gpuviz-search__place", { role: "status" });
  box.append(field, place, found);
  scope.append(parent, box);
  const shown = new Scope();
  let hits: readonly Hit[] = [];
  /** The hit that is selected. */
  let at = NONE;
  let isStepping = false;
  const close = (): void => {
    shown.dispose();
    found.replaceChildren();
    found.hidden = true;
  };
  const show = (): void => {
    close();
    at = NONE;
    place.textContent = "";
    hits = charts.flatMap((chart) => search(field.value, chart).map((hit) => ({ ...hit, chart })));
    found.hidden = field.value.trim() === "";
    if (!found.hidden) {
      found.append(...hitList(hits, shown, close));
    }
  };
  const step = (by: number): void => {
    if (hits.length === 0) {
      return;
    }
    const next = (Math.max(at, by < 0 ? 0 : NONE) + by + hits.length) % hits.length;
    const hit = hits[next];
    if (hit !== undefined) {
      close();
      isStepping = true;
      reveal(hit.selected, hit.chart);
      field.focus({ preventScroll: true });
      isStepping = false;
      at = next;
      place.textContent = `${formatCount(next + 1)} of ${formatCount(hits.length)}`;
    }
  };
  scope.listen(field, "input", show);
  scope.listen(field, "focus", () => {
    if (!isStepping) {
      show();
    }
  });
  scope.listen(box, "focusout", ({ relatedTarget }) => {
    if (!(relatedTarget instanceof Node && box.contains(relatedTarget))) {
      close();
    }
  });
  scope.listen(box, "keydown", (event) => {
    if (event.key === "Escape" && at !== NONE) {
      // The browser would clear the field, and leave what is beside it.
      event.preventDefault();
      hits[at]?.chart.showSelected();
    } else if (event.key === "Escape") {
      field.value = "";
      close();
      field.blur();
    } else if (event.key === "Enter" && event.target === field) {
      step(event.shiftKey ? -1 : 1);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      moveFocus(found, event.key === "ArrowDown" ? 1 : -1);
    }
    event.stopPropagation();
  });
  scope.defer(close);
  return () => field.focus();
}

function hitList(hits: readonly Hit[], scope: Scope, close: () => void): HTMLElement[] {
  const more = hits.length > MOST_HITS ? `, the first ${MOST_HITS} shown` : "";
  const buttons = hits.slice(0, MOST_HITS).map(({ what, detail, selected, chart, name = what }) => {
    const hit = actionButton(scope, "", `Select and zoom to ${name}`, () => {
      close();
      reveal(selected, chart);
    });
    hit.className = "gpuviz-search__hit";
    hit.append(
      element("span", "gpuviz-search__what", what),
      element("span", "", [chart.title, detail].filter(Boolean).join(": ")),
    );
    return hit;
  });
  return [
    element("p", "gpuviz-search__count", `${formatCount(hits.length)} found${more}`),
    ...buttons,
  ];
}

/** Moves the focus to the next or the previous hit. */
function moveFocus(found: HTMLElement, by: number): void {
  const buttons = [...found.querySelectorAll("button")];
  const focused = buttons.findIndex((hit) => hit === document.activeElement);
  buttons[Math.min(Math.max(focused + by, 0), buttons.length - 1)]?.focus();
}
