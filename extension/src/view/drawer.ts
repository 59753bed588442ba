import { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import { actionButton, element } from "./dom.ts";
import type { Pane, Panes } from "./panes.ts";

/** Half of what is below the overview is 38 to 40 % of a window. */
const HEIGHT = "max(50%, 255px)";
/** Nine rows of a table, where the tracks above keep a least height. */
const LEAST = { px: 255, most: "100% - 246px" };
const ORDER = [
  "selection",
  "moment",
  "changes",
  "lines",
  "call-stacks",
  "modules",
  "iterations",
  "kernels",
  "copies",
  "waits",
  "host",
  "collectives",
  "fragmentation",
  "graphs",
  "other-memory",
  "findings",
  "hazards",
  "default-stream",
  "what-if",
  "summary",
  "environment",
];
/** Tabs that stay where not all fit. */
const KEPT = ["findings", "hazards"];
let created = 0;

interface Panel {
  readonly name: string;
  readonly tab: HTMLButtonElement;
  readonly root: HTMLElement;
}

/**
 * Panels below the tracks, one of which is shown, chosen by its tab.
 *
 * Where the page is narrow, and on paper, they follow one another, each under its heading.
 */
export class Drawer {
  /** The panel that is shown. */
  readonly shown = new Signal("selection");
  /** Beside the tabs. */
  readonly tools = element("div", "gpuviz-drawer__tools");
  /** Above all panels. */
  readonly top = element("div", "gpuviz-drawer__top");
  readonly panels = element("div", "gpuviz-drawer__panels");
  readonly #scope: Scope;
  readonly #panes: Panes;
  readonly #pane: Pane;
  readonly #tabs = element("div", "gpuviz-drawer__tabs", { role: "tablist", ariaLabel: "Details" });
  /** Lists the tabs that do not fit. */
  readonly #more = element("select", "gpuviz-drawer__more", { ariaLabel: "More details" });
  readonly #list: Panel[] = [];
  #isChosen = false;

  constructor(scope: Scope, panes: Panes, isOpen: boolean, height = HEIGHT) {
    this.#scope = scope;
    this.#panes = panes;
    this.#pane = panes.add("drawer", "Details", height, isOpen);
    panes.resize(this.#pane, height, LEAST.px, LEAST.most);
    const head = element("div", "gpuviz-drawer__head");
    const toggle = actionButton(scope, "▾", "Open or close the details", () =>
      panes.toggle(this.#pane),
    );
    toggle.classList.add("gpuviz-drawer__toggle");
    const maximize = actionButton(
      scope,
      "⤢",
      "Details in all of the window, or no longer; also: double click on this bar",
      () => panes.maximize(this.#pane),
    );
    maximize.classList.add("gpuviz-drawer__maximize");
    scope.listen(head, "dblclick", ({ target }) => {
      if (target === head || target === this.#tabs) {
        panes.maximize(this.#pane);
      }
    });
    scope.listen(this.#more, "change", () => this.open(this.#more.value));
    head.append(this.#tabs, this.#more, this.tools, maximize, toggle);
    const observer = new ResizeObserver(() => this.#fit());
    // What is beside the tabs takes some of their width, even if it has none.
    observer.observe(this.#tabs);
    scope.defer(() => observer.disconnect());
    this.#pane.root.append(head, this.top, this.panels);
    scope.follow(() => {
      toggle.ariaExpanded = String(this.#pane.isOpen.value);
    }, this.#pane.isOpen);
    scope.follow(() => this.#show(), this.shown);
    scope.listen(this.#tabs, "keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by !== undefined) {
        const offered = this.#list.filter(({ tab }) => !tab.hidden);
        const at = offered.findIndex(({ name }) => name === this.shown.value);
        const next = offered[(at + by + offered.length) % offered.length];
        event.preventDefault();
        event.stopPropagation();
        this.open(next?.name ?? "");
        next?.tab.focus();
      }
    });
  }

  /** Adds a panel with its tab at its place among the others; it ends with the scope. */
  add(scope: Scope, name: string, title: string): HTMLElement {
    const id = `gpuviz-panel-${(created += 1)}`;
    const root = element("div", "gpuviz-drawer__panel");
    Object.assign(root, { id, role: "tabpanel", tabIndex: 0, ariaLabel: title });
    root.dataset["panel"] = name;
    root.append(element("h3", "gpuviz-drawer__title", title));
    const tab = actionButton(this.#scope, title, "", () => this.open(name));
    tab.className = "gpuviz-drawer__tab";
    tab.role = "tab";
    tab.dataset["tab"] = name;
    tab.setAttribute("aria-controls", id);
    const panel = { name, tab, root };
    const after = this.#list.findIndex((each) => ORDER.indexOf(each.name) > ORDER.indexOf(name));
    const place = after < 0 ? this.#list.length : after;
    const next = this.#list[place];
    this.#tabs.insertBefore(tab, next?.tab ?? null);
    this.panels.insertBefore(root, next?.root ?? null);
    this.#list.splice(place, 0, panel);
    scope.defer(() => {
      this.#list.splice(this.#list.indexOf(panel), 1);
      tab.remove();
      root.remove();
    });
    this.#show();
    return root;
  }

  /** Shows or hides the tab of a panel, depending on whether it has contents. */
  offer(name: string, isOffered: boolean): void {
    const panel = this.#list.find((each) => each.name === name);
    if (panel !== undefined) {
      panel.tab.hidden = !isOffered;
      panel.root.hidden = !isOffered;
      this.#fit();
    }
  }

  /** Shows a panel because a reader asks for it. */
  open(name: string): void {
    this.#isChosen = true;
    this.shown.value = name;
    if (!this.#pane.isOpen.value) {
      this.#panes.toggle(this.#pane);
    }
  }

  /** Shows the first of these panels that there is, unless a reader has chosen one. */
  prefer(...names: readonly string[]): void {
    const name = names.find((each) => this.#list.some((panel) => panel.name === each));
    if (!this.#isChosen && name !== undefined) {
      this.shown.value = name;
    }
  }

  #show(): void {
    for (const { name, tab, root } of this.#list) {
      const isShown = name === this.shown.value;
      tab.ariaSelected = String(isShown);
      tab.tabIndex = isShown ? 0 : -1;
      root.classList.toggle("gpuviz-drawer__panel--shown", isShown);
    }
    this.#fit();
  }

  /** Shows as many tabs as fit, with the chosen one among them; the rest is in a list. */
  #fit(): void {
    const offered = this.#list.filter(({ tab }) => !tab.hidden);
    const cut = (panels: readonly Panel[]): void => {
      for (const panel of offered) {
        panel.tab.classList.toggle("gpuviz-drawer__tab--cut", panels.includes(panel));
      }
      this.#more.hidden = panels.length === 0;
      const options = panels.map(({ name, tab }) => new Option(tab.textContent ?? "", name));
      this.#more.replaceChildren(new Option(`${panels.length} more`, ""), ...options);
    };
    cut([]);
    const widths = new Map(
      offered.map((panel) => [panel, panel.tab.getBoundingClientRect().width]),
    );
    const widthOf = (panels: readonly Panel[]): number =>
      panels.reduce((sum, panel) => sum + (widths.get(panel) ?? 0), 0);
    const isShown = ({ name }: Panel): boolean => name === this.shown.value;
    const rest: Panel[] = [];
    while (widthOf(offered) - widthOf(rest) > this.#tabs.clientWidth) {
      const fitting = offered.filter((panel) => !isShown(panel) && !rest.includes(panel));
      const next = fitting.findLast(({ name }) => !KEPT.includes(name)) ?? fitting.at(-1);
      if (next === undefined) {
        break;
      }
      rest.push(next);
      cut(offered.filter((panel) => rest.includes(panel)));
    }
  }
}
