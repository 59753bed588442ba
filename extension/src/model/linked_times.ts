/** The same moment of two recordings, in ns since the start of each. */
export type Anchor = readonly [before: number, after: number];

/**
 * The moment of one recording that corresponds to a moment of the other.
 *
 * Between two anchors, time passes evenly; before the first and after the last, as fast as there.
 * Anchors are in order of both times, which differ from one to the next.
 */
export function otherTime(anchors: readonly Anchor[], side: 0 | 1, timeNs: number): number {
  const other = side === 0 ? 1 : 0;
  const next = anchors.findIndex((anchor) => anchor[side] > timeNs);
  const later = next < 0 ? undefined : anchors[next];
  const earlier = anchors[(next < 0 ? anchors.length : next) - 1];
  if (earlier === undefined || later === undefined) {
    const known = earlier ?? later ?? [0, 0];
    return known[other] + (timeNs - known[side]);
  }
  const share = (timeNs - earlier[side]) / (later[side] - earlier[side]);
  return earlier[other] + share * (later[other] - earlier[other]);
}
