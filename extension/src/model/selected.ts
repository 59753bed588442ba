/** What a reader has selected: a block, a span by its kind and its row in its table, or a gap. */
export type Selected =
  | { readonly kind: "gap"; readonly gap: Gap }
  | { readonly kind: "block"; readonly block: number }
  | { readonly kind: "span"; readonly spanKind: number; readonly row: number };

/** A time in which nothing ran; `next` is the activity that ended it, or NO_ACTIVITY. */
export interface Gap {
  readonly fromNs: number;
  readonly toNs: number;
  readonly next: number;
  /** The stream that was idle; undefined where the whole device was. */
  readonly stream: number | undefined;
}

/** What lights up with a selection. */
export interface Highlighted {
  readonly blocks: ReadonlySet<number>;
  /** Rows of `Activities`. */
  readonly activities: ReadonlySet<number>;
  /** Other spans and idle gaps, such as waits; also what is selected, even if it is a block. */
  readonly spans: readonly Selected[];
}

export const NOTHING_HIGHLIGHTED: Highlighted = {
  blocks: new Set(),
  activities: new Set(),
  spans: [],
};
