import { BACKWARD_OF } from "../wire/codes.ts";
import { COLOURED, type Categories } from "./categories.ts";
import type { Anchor } from "./linked_times.ts";
import { describeFrame, siteText } from "./stacks.ts";

/** A line of a program: its function, its file and its number. */
type Line = readonly [name: string, filename: string, line: number];

/** What Python found to be the same in two recordings. */
export interface Corresponding {
  readonly anchors: readonly Anchor[];
  /** The lines of both programs; those of only one have nothing on the other side. */
  readonly lines: readonly (readonly [before: Line | null, after: Line | null])[];
  /** How the kernels differ that differ by more than noise, by name. */
  readonly kernels: Readonly<Record<string, string>>;
}

/**
 * What makes a line of either program one row: for the same line of both the same text.
 *
 * Sites are those of `Stacks.callSiteOf` or `Stacks.siteOf`, before or after.
 */
export function lineKeys({ lines }: Corresponding): readonly [KeyOfSite, KeyOfSite] {
  const keys = [new Map<string, string>(), new Map<string, string>()] as const;
  lines.forEach((pair, number) => {
    pair.forEach((line, side) => {
      if (line !== null) {
        const [name, filename, at] = line;
        const frame = { name, filename, line: at };
        const known = keys[side === 0 ? 0 : 1];
        known.set(siteText(frame), `line ${number}`);
        known.set(describeFrame(frame), `line ${number}`);
      }
    });
  });
  const keyOf =
    (known: ReadonlyMap<string, string>): KeyOfSite =>
    (site) => {
      const before = site.startsWith(BACKWARD_OF) ? BACKWARD_OF : "";
      return before + (known.get(site.slice(before.length)) ?? site);
    };
  return [keyOf(keys[0]), keyOf(keys[1])];
}

type KeyOfSite = (site: string) => string;

/** Categories in the places, and so in the colours, that the same ones have before. */
export function inPlacesOf(
  before: Categories,
  after: Categories,
  [keyBefore, keyAfter]: readonly [KeyOfSite, KeyOfSite],
): Categories {
  if (after.isOrdered) {
    return after;
  }
  const known = before.all.slice(0, COLOURED);
  const places = new Map(known.map(({ label }, place) => [keyBefore(label), place]));
  const named = after.all.slice(0, COLOURED);
  const wanted = named.map(({ label }) => places.get(keyAfter(label)));
  const all = Array.from({ length: COLOURED }, (_, place) => place);
  const free = [...all.slice(known.length), ...all.slice(0, known.length)].filter(
    (place) => !wanted.includes(place),
  );
  const placed = wanted.map((place) => place ?? free.shift() ?? COLOURED);
  const count = placed.reduce((most, place) => Math.max(most, place + 1), 0);
  const nothing = { label: "", short: "", long: "" };
  return {
    ...after,
    all: [
      ...all.slice(0, count).map((place) => {
        const own = named[placed.indexOf(place)];
        return own ?? { ...(known[place] ?? nothing), bytesAtPeak: 0 };
      }),
      ...after.all.slice(COLOURED),
    ],
    ofGroup: after.ofGroup.map((place) => placed[place] ?? place),
  };
}

/** What is the same in two recordings, or is only in one of them. */
export interface Pair<Row> {
  readonly key: string;
  readonly before: Row | undefined;
  readonly after: Row | undefined;
}

/** The rows of two recordings by key. */
export function paired<Row>(
  before: readonly Row[],
  after: readonly Row[],
  keysOf: readonly [(row: Row) => string, (row: Row) => string],
): Pair<Row>[] {
  const pairs = new Map<string, Pair<Row>>();
  for (const row of before) {
    const key = keysOf[0](row);
    pairs.set(key, { key, before: row, after: undefined });
  }
  for (const row of after) {
    const key = keysOf[1](row);
    pairs.set(key, { key, before: pairs.get(key)?.before, after: row });
  }
  return [...pairs.values()];
}
