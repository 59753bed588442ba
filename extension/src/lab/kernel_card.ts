import { showErrorMessage } from "@jupyterlab/apputils";
import type { TranslationBundle } from "@jupyterlab/translation";

import type { Action, Actions, Outcome } from "./actions.ts";
import { formatDuration } from "../base/format.ts";
import { element } from "../view/dom.ts";
import type { KernelLink } from "./kernel_link.ts";
import type { LinkedKernel } from "./kernel_links.ts";
import type { HeldMemory, KernelState } from "./panel_messages.ts";
import { sparkline } from "./sparkline.ts";

/** The panel's card of one kernel. */
export class KernelCard {
  readonly node = element("section", "gpuviz-card");
  #kernel: LinkedKernel;
  readonly #title = document.createElement("h3");
  readonly #words: TranslationBundle;
  readonly #status = element("p", "gpuviz-card__status");
  readonly #numbers = element("dl", "gpuviz-card__numbers");
  readonly #said = element("p", "gpuviz-card__said");
  readonly #spark;
  readonly #held = element("div", "gpuviz-card__held");
  readonly #buttons = element("div", "gpuviz-card__buttons");
  readonly #actions: Actions;

  constructor(kernel: LinkedKernel, actions: Actions, words: TranslationBundle) {
    this.#kernel = kernel;
    this.#actions = actions;
    this.#words = words;
    this.#spark = sparkline(words.__("Allocated memory over the last two minutes"));
    this.#status.setAttribute("role", "status");
    this.node.append(this.#title, this.#status, this.#numbers, this.#spark.node);
    this.node.append(this.#buttons, this.#said, this.#held);
    kernel.link.changed.connect(this.#draw, this);
    this.rename(kernel);
    this.#draw();
  }

  /** Updates the path of the kernel's notebook, which may have changed. */
  rename(kernel: LinkedKernel): void {
    this.#kernel = kernel;
    // A new session briefly has a temporary path.
    this.#title.textContent = kernel.name || (kernel.path.split("/").at(-1) ?? "");
    this.#title.title = kernel.path;
  }

  dispose(): void {
    this.#kernel.link.changed.disconnect(this.#draw, this);
    this.node.remove();
  }

  #draw(): void {
    const { link } = this.#kernel;
    const { state } = link;
    this.node.dataset["status"] = state?.recording ? "recording" : link.status;
    this.#status.textContent = statusText(link, this.#words);
    const isKnown = link.status === "present" && state !== undefined;
    this.#numbers.replaceChildren(...(isKnown ? numbers(state) : []));
    this.#spark.node.toggleAttribute("hidden", !isKnown || link.history.length < 2);
    this.#spark.draw(link.history);
    this.#drawButtons(state?.recording ?? false, (state?.devices.length ?? 0) > 0);
  }

  #drawButtons(recording: boolean, hasData: boolean): void {
    const { link } = this.#kernel;
    const __ = this.#words.__.bind(this.#words);
    const { start, stop, snapshot, report, dashboard, leaks } = this.#actions;
    let offered: [string, string, Action, boolean][] = [];
    if (link.status === "absent") {
      offered = [["load", __("Load gpuviz in this kernel"), load, true]];
    } else if (link.status === "present") {
      offered = [
        recording
          ? ["stop", __("Stop"), stop, true]
          : ["start", __("Start"), start, link.state !== undefined],
        ["snapshot", __("Save"), snapshot, hasData],
        ["report", __("Report"), report, hasData],
        ["dashboard", __("Dashboard"), dashboard, true],
        ["leaks", __("Leaks"), this.#waiting(leaks), true],
      ];
    }
    const key = offered.map(([name, , , enabled]) => `${name}${enabled}`).join(" ");
    if (this.#buttons.dataset["offered"] === key) {
      return;
    }
    this.#buttons.dataset["offered"] = key;
    this.#buttons.replaceChildren(
      ...offered.map(([name, label, action, enabled]) => {
        const created = button(label, () => void this.#run(action));
        created.dataset["action"] = name;
        created.disabled = !enabled;
        return created;
      }),
    );
  }

  /** An action that looks at the program's objects, and so waits for its cell. */
  #waiting(action: Action): Action {
    return (kernel) => {
      if (kernel.link.isBusy) {
        this.#said.textContent = this.#words.__("Waiting for the running cell to end.");
      }
      return action(kernel);
    };
  }

  async #run(action: Action): Promise<void> {
    const { link } = this.#kernel;
    if (link.isBusy && !link.answersWhileBusy) {
      this.#said.textContent = this.#words.__("Waiting for the running cell to end.");
    }
    try {
      this.#tell(await action(this.#kernel));
    } catch (error) {
      this.#said.textContent = "";
      await showErrorMessage(this.#words.__("gpuviz"), error as Error);
    }
  }

  #tell({ text, path, held }: Outcome): void {
    this.#said.textContent = text;
    const release = (offer: string): void => {
      void this.#run(this.#waiting((kernel) => this.#actions.release(kernel, offer)));
    };
    this.#held.replaceChildren(...(held === undefined ? [] : heldList(held, this.#words, release)));
    if (path !== undefined) {
      const open = button(this.#words.__("Open"), () => void this.#actions.open(path));
      this.#said.append(" ", open);
    }
  }
}

/** Who keeps memory alive, and a button for each that can be let go. */
function heldList(
  { rows, more, releases }: HeldMemory,
  words: TranslationBundle,
  release: (offer: string) => void,
): HTMLElement[] {
  const list = element("ul", "gpuviz-card__holders");
  for (const [size, blocks, keeper, note] of rows) {
    const entry = element("li", "", `${keeper} `);
    const count = blocks === "1" ? "" : words.__("%1 blocks", blocks);
    const details = [count, note].filter((each) => each !== "").join(", ");
    entry.prepend(element("b", "", size), " ");
    entry.append(element("small", "", details));
    list.append(entry);
  }
  const rest = more > 0 ? [element("p", "", words.__("%1 more", more))] : [];
  const buttons = element("div", "gpuviz-card__buttons");
  buttons.append(
    ...releases.map(([offer, title, bytes]) => button(`${title}: ${bytes}`, () => release(offer))),
  );
  return [list, ...rest, buttons];
}

async function load({ link }: LinkedKernel): Promise<Outcome> {
  await link.load();
  return { text: "" };
}

function statusText(link: KernelLink, words: TranslationBundle): string {
  const { state } = link;
  switch (link.status) {
    case "waiting":
      return link.isBusy
        ? words.__("The kernel is busy; waiting for its cell to end.")
        : words.__("Connecting to the kernel …");
    case "absent":
      return words.__("gpuviz is not loaded.");
    case "unfit":
      return words.__("Cannot connect to gpuviz in this kernel. %1", link.complaint);
    case "foreign":
      return words.__("Not a Python kernel.");
    case "dead":
      return words.__("The kernel died.");
    case "disconnected":
      return words.__("No connection to the kernel.");
    case "present":
      if (state === undefined) {
        return link.isBusy && !link.answersWhileBusy
          ? words.__("This kernel sends no updates while a cell runs.")
          : words.__("gpuviz is loaded.");
      }
      return state.recording
        ? words.__("Recording for %1", formatDuration(state.elapsedNs ?? 0))
        : words.__("Not recording");
  }
}

function numbers({ numbers: shown = [] }: KernelState): HTMLElement[] {
  return shown.flatMap(([name, value, detail]) => {
    const number = element("dd", "", value);
    number.append(" ", element("small", "", detail));
    return [element("dt", "", name), number];
  });
}

function button(label: string, act: () => void): HTMLButtonElement {
  const created = element("button", "jp-mod-styled jp-Button", label);
  created.type = "button";
  created.addEventListener("click", act);
  return created;
}
