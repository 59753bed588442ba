import type { DeviceTotals } from "./panel_messages.ts";

/** One who tells of the devices of a machine: a kernel, or the Jupyter server. */
export interface Teller {
  readonly machine: string;
  readonly devices: readonly DeviceTotals[];
  /** The paths of the notebooks that processes of the machine belong to. */
  readonly owners: ReadonlyMap<number, string>;
}

/** A device, whoever told of it. */
export interface ToldDevice extends Teller {
  readonly device: DeviceTotals;
}

/**
 * Each device once, as the first of the tellers tells of it, in the order of the server's first.
 *
 * Machines are told apart by name; that of the server is its own also where a kernel in a container
 * tells of its devices. Process ids mean something only on one machine.
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
