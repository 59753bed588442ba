import { ARRANGEMENT } from "./arrangement.ts";

/**
 * What a link to the page points at: `#t=1000-2000&span=1200-1400&select=block:7&device=0&event=12`,
 * and `keep=1200-1400:step` for each span that has a name, `pin=stream:3` for each pinned lane.
 */
export interface Address {
  readonly window: readonly [fromNs: number, toNs: number] | undefined;
  /** The selected span. */
  readonly span: readonly [fromNs: number, toNs: number] | undefined;
  readonly kept: readonly {
    readonly fromNs: number;
    readonly toNs: number;
    readonly name: string;
  }[];
  /** The lanes above all others, see `nameOfLane`. */
  readonly pinned: readonly string[];
  readonly selected: { readonly kind: SelectedKind; readonly row: number } | undefined;
  readonly device: number | undefined;
  /** The row of the event after which the segment map is shown. */
  readonly event: number | undefined;
  /** How the tracks and the drawer are arranged, see `arrange`. */
  readonly view: string | undefined;
}

export const SELECTED_KINDS = [
  "block",
  "activity",
  "range",
  "wait",
  "call",
  "overhead",
  "sample",
  "memory",
] as const;
export type SelectedKind = (typeof SELECTED_KINDS)[number];

export const NOWHERE: Address = {
  window: undefined,
  span: undefined,
  kept: [],
  pinned: [],
  selected: undefined,
  device: undefined,
  event: undefined,
  view: undefined,
};

/** The address in a fragment, and the parts of the fragment that are none. */
export function readAddress(fragment: string): { address: Address; bad: readonly string[] } {
  let address = NOWHERE;
  const bad: string[] = [];
  const parts = fragment.replace(/^#/, "").split("&");
  for (const part of parts.filter((each) => each !== "")) {
    const read = readPart(part);
    if (read === undefined) {
      bad.push(part);
    } else {
      const { kept = [], pinned = [] } = read;
      address = {
        ...address,
        ...read,
        kept: [...address.kept, ...kept],
        pinned: [...address.pinned, ...pinned],
      };
    }
  }
  return { address, bad };
}

function readPart(part: string): Partial<Address> | undefined {
  const times = /^(t|span|keep)=(\d{1,16})-(\d{1,16})(?::([^:]{1,600}))?$/.exec(part);
  if (times !== null) {
    const [, what, from, to, name] = times;
    const [fromNs, toNs] = [Number(from), Number(to)];
    if (fromNs >= toNs || (what === "keep") !== (name !== undefined)) {
      return undefined;
    }
    if (name !== undefined) {
      const text = decoded(name);
      return text === undefined ? undefined : { kept: [{ fromNs, toNs, name: text }] };
    }
    return what === "t" ? { window: [fromNs, toNs] } : { span: [fromNs, toNs] };
  }
  const selected = /^select=([a-z]{1,10}):(\d{1,10})$/.exec(part);
  if (selected !== null) {
    const kind = SELECTED_KINDS.find((each) => each === selected[1]);
    return kind === undefined ? undefined : { selected: { kind, row: Number(selected[2]) } };
  }
  const pinned = /^pin=((?:stream|thread):\d{1,10})$/.exec(part);
  if (pinned?.[1] !== undefined) {
    return { pinned: [pinned[1]] };
  }
  const view = /^view=(.+)$/.exec(part);
  if (view?.[1] !== undefined) {
    return ARRANGEMENT.test(view[1]) ? { view: view[1] } : undefined;
  }
  const number = /^(device|event)=(\d{1,10})$/.exec(part);
  return number === null ? undefined : { [number[1] ?? ""]: Number(number[2]) };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The fragment that leads to an address, with its `#`; empty for none. */
export function writeAddress({
  window,
  span,
  kept,
  pinned,
  selected,
  device,
  event,
  view,
}: Address): string {
  const times = ([fromNs, toNs]: readonly [number, number]): string =>
    `${Math.round(fromNs)}-${Math.round(toNs)}`;
  const parts = [
    ...(window === undefined ? [] : [`t=${times(window)}`]),
    ...(span === undefined ? [] : [`span=${times(span)}`]),
    ...kept.map(
      ({ fromNs, toNs, name }) => `keep=${times([fromNs, toNs])}:${encodeURIComponent(name)}`,
    ),
    ...pinned.map((lane) => `pin=${lane}`),
    ...(selected === undefined ? [] : [`select=${selected.kind}:${selected.row}`]),
    ...(device === undefined ? [] : [`device=${device}`]),
    ...(event === undefined ? [] : [`event=${event}`]),
    ...(view === undefined ? [] : [`view=${view}`]),
  ];
  return parts.length === 0 ? "" : `#${parts.join("&")}`;
}
