import { countAtMost } from "../base/search.ts";
import { ColumnTable } from "../wire/column_table.ts";
import type { TorchSnapshot } from "./torch_snapshot.ts";
import type { TorchTimes } from "./torch_times.ts";

const OPEN = -1;

interface TorchRange {
  readonly name: string;
  readonly startNs: number;
  endNs: number;
}

/**
 * What the user named: rows of `ranges` from annotations and from the metadata of events.
 *
 * Each run of events of a device with the same metadata is a range from its first event to its
 * last, unless an annotation of that name was open then.
 */
export class TorchRanges {
  /** Of each event, 0 for none. */
  readonly ofEvent: Float64Array<ArrayBuffer>;
  readonly #ranges: TorchRange[] = [];
  /** By name, the ranges that were annotated, by their start. */
  readonly #annotated = new Map<string, { startsNs: number[]; places: number[] }>();

  constructor(snapshot: TorchSnapshot, times: TorchTimes) {
    this.ofEvent = new Float64Array(snapshot.events.count);
    this.#pair(snapshot, times);
    const places = [...this.#ranges.keys()];
    const startOf = (place: number): number => this.#ranges[place]?.startNs ?? 0;
    for (const place of places.sort((left, right) => startOf(left) - startOf(right))) {
      const name = this.#ranges[place]?.name ?? "";
      const annotated = this.#annotated.get(name) ?? { startsNs: [], places: [] };
      this.#annotated.set(name, annotated);
      annotated.startsNs.push(startOf(place));
      annotated.places.push(place);
    }
    this.#cover(snapshot, times);
  }

  /** The tables `ranges` and `strings`. */
  tables(): readonly ColumnTable[] {
    const names = [...new Set(this.#ranges.map(({ name }) => name))];
    const ids = new Map(names.map((name, place) => [name, place + 1]));
    const numbers = (value: (range: TorchRange, place: number) => number) =>
      Float64Array.from(this.#ranges, value);
    return [
      new ColumnTable("ranges", {
        id: numbers((_, place) => place + 1),
        time: numbers(({ startNs }) => startNs),
        end: numbers(({ endNs }) => endNs),
        name: numbers(({ name }) => ids.get(name) ?? 0),
        kind: { texts: ["range"], codes: new Uint8Array(this.#ranges.length) },
        thread: numbers(() => 0),
        parent: numbers(() => 0),
      }),
      new ColumnTable("strings", { id: Float64Array.from(ids.values()), text: names }),
    ];
  }

  /** Joins the starts and ends of annotations; of equal names the last start ends first. */
  #pair({ annotations }: TorchSnapshot, times: TorchTimes): void {
    const opened = new Map<string, TorchRange[]>();
    for (const { name, device, isStart, timeUs } of annotations) {
      const timeNs = times.of(timeUs);
      const key = `${device} ${name}`;
      const waiting = opened.get(key) ?? [];
      opened.set(key, waiting);
      const start = isStart ? undefined : waiting.pop();
      if (start !== undefined) {
        start.endNs = Math.max(timeNs, start.startNs);
      } else {
        const range = { name, startNs: isStart ? timeNs : 0, endNs: isStart ? OPEN : timeNs };
        this.#ranges.push(range);
        if (isStart) {
          waiting.push(range);
        }
      }
    }
  }

  #cover({ events }: TorchSnapshot, times: TorchTimes): void {
    const { metadata, device, count } = events;
    let first = 0;
    while (first < count) {
      const name = metadata[first] ?? "";
      let end = first + 1;
      while (end < count && metadata[end] === name && device.at(end) === device.at(first)) {
        end += 1;
      }
      if (name !== "") {
        const id = this.#covering(name, times.events[first] ?? 0, times.events[end - 1] ?? 0);
        this.ofEvent.fill(id, first, end);
      }
      first = end;
    }
  }

  /** The id of the last annotated range before that time if it lasts as long, else of a new one. */
  #covering(name: string, startNs: number, endNs: number): number {
    const { startsNs, places } = this.#annotated.get(name) ?? { startsNs: [], places: [] };
    const place = places[countAtMost(startsNs, startNs) - 1];
    const range = place === undefined ? undefined : this.#ranges[place];
    if (place !== undefined && range !== undefined) {
      if (range.endNs >= endNs || range.endNs === OPEN) {
        return place + 1;
      }
    }
    return this.#ranges.push({ name, startNs, endNs });
  }
}
