/** What a reader has selected: a block, or a span by its kind and its row in its table. */
export type Picked =
  | { readonly kind: "block"; readonly block: number }
  | { readonly kind: "span"; readonly spanKind: number; readonly row: number };

/** What lights up with a selection. */
export interface Lit {
  readonly blocks: ReadonlySet<number>;
  /** Rows of `Activities`. */
  readonly activities: ReadonlySet<number>;
}

export const NOTHING_LIT: Lit = { blocks: new Set(), activities: new Set() };
