/** The code of each name in a list: its position. */
export function codesOf<const Name extends string>(
  names: readonly Name[],
): Readonly<Record<Name, number>> {
  return Object.fromEntries(names.map((name, code) => [name, code])) as Record<Name, number>;
}
