import type { DeviceTotals } from "./panel_messages.ts";

/** A source of information on a machine's devices: a kernel, or the Jupyter server. */
export interface Teller {
  readonly machine: string;
  readonly devices: readonly DeviceTotals[];
  /** The paths of the notebooks of the machine's processes. */
  readonly owners: ReadonlyMap<number, string>;
}

/** A device with its source. */
export interface ToldDevice extends Teller {
  readonly device: DeviceTotals;
}

/**
 * Each device once, from the first source that reports it, the server's devices first.
 *
 * Machines are distinguished by name; the server's keeps its name even if a kernel in a container
 * reports its devices. Process ids are valid on one machine only.
 */
export function unionOf(tellers: readonly Teller[], server: Teller | undefined): ToldDevice[] {
  const inOrder = server === undefined ? tellers : [server, ...tellers];
  const uuids = new Set(inOrder.flatMap(({ devices }) => devices.map(({ uuid }) => uuid)));
  return [...uuids].flatMap((uuid) => {
    const told = tellers.flatMap((teller) => {
      const device = teller.devices.find((each) => each.uuid === uuid);
      return device === undefined ? [] : [{ ...teller, device }];
    });
    const [first] = told;
    if (first === undefined) {
      return [];
    }
    const neighbours = told.filter(({ machine }) => machine === first.machine);
    const owners = new Map(neighbours.flatMap((each) => [...each.owners]));
    const isServers = server?.devices.some((each) => each.uuid === uuid) ?? false;
    return [{ ...first, owners, machine: isServers ? (server?.machine ?? "") : first.machine }];
  });
}
