import { setSize, type Panes } from "../view/panes.ts";

/** Sizes of panes by name, 0 for those that are closed: `memory-176_blocks-0_drawer-210`. */
export const ARRANGEMENT = /^[a-z]+-\d{1,5}(_[a-z]+-\d{1,5})*$/;

/** Arranges panes as a text from `Panes.arrangement` says. */
export function arrange(panes: Panes, text: string): void {
  for (const [name, size] of text.split("_").map((part) => part.split("-"))) {
    const pane = panes.list.find((each) => each.name === name);
    if (pane !== undefined) {
      pane.isOpen.value = Number(size) > 0;
      setSize(pane, Number(size));
    }
  }
  panes.arrangement.value = text;
}
