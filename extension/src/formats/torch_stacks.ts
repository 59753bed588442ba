import { PickleItems, type PickleValue } from "../wire/pickle_value.ts";
import { failAt, listOf, textOf, type Place } from "./snapshot_values.ts";

const LARGEST_LINE = 2 ** 31 - 1;

/** The distinct frames and stacks of a snapshot; ids begin at 1, 0 is none. */
export class TorchStacks {
  readonly names: string[] = [];
  readonly filenames: string[] = [];
  readonly lines: number[] = [];
  /** Of each stack the ids of its frames, innermost first. */
  readonly stacks: (readonly number[])[] = [];
  readonly #frameIds = new Map<string, number>();
  readonly #stackIds = new Map<string, number>();
  // A list or a frame is looked at once, however often it is named.
  readonly #known = new Map<PickleItems, number>();

  /** The id of a list of frames; 0 for an empty one or None. */
  idOf(frames: PickleValue, place: Place): number {
    if (frames === undefined) {
      return 0;
    }
    const list = frames instanceof PickleItems ? frames : failAt(place, "frames", "a list");
    const known = this.#known.get(list);
    if (known !== undefined) {
      return known;
    }
    const ids: number[] = [];
    for (const frame of listOf(list, place, "frames")) {
      // Frames of other languages may be plain texts; the place of those is not known.
      if (frame instanceof PickleItems && frame.kind === "dict") {
        ids.push(this.#frame(frame, place));
      }
    }
    const id = ids.length === 0 ? 0 : idIn(this.#stackIds, ids.join(" "));
    if (id > this.stacks.length) {
      this.stacks.push(ids);
    }
    this.#known.set(list, id);
    return id;
  }

  #frame(frame: PickleItems, place: Place): number {
    const known = this.#known.get(frame);
    if (known !== undefined) {
      return known;
    }
    let name = "";
    let filename = "";
    let line = 0;
    for (let index = 0; index + 1 < frame.items.length; index += 2) {
      const value = frame.items[index + 1];
      switch (frame.items[index]) {
        case "name":
          name = value === undefined ? "" : textOf(value, place, "name");
          break;
        case "filename":
          filename = value === undefined ? "" : textOf(value, place, "filename");
          break;
        case "line":
          // Where it does not know the line, torch has -1 as a number of 64 bits.
          line = typeof value === "number" ? value : 0;
          break;
      }
    }
    line = Math.min(Math.max(line, 0), LARGEST_LINE);
    const id = idIn(this.#frameIds, `${line} ${filename.length} ${filename}${name}`);
    if (id > this.lines.length) {
      this.names.push(name);
      this.filenames.push(filename);
      this.lines.push(line);
    }
    this.#known.set(frame, id);
    return id;
  }
}

/** The number of a key, a new one for a new key. */
function idIn(ids: Map<string, number>, key: string): number {
  const id = ids.get(key) ?? ids.size + 1;
  ids.set(key, id);
  return id;
}
