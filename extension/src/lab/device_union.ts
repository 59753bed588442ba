import type { DeviceTotals } from "./panel_messages.ts";

/** A source of information on a machine's devices: a kernel, or the Jupyter server. */
export interface Source {
  readonly machine: string;
  readonly devices: readonly DeviceTotals[];
  /** The paths of the notebooks of the machine's processes. */
  readonly owners: ReadonlyMap<number, string>;
}

/** A device with its source. */
export interface SourcedDevice extends Source {
  readonly device: DeviceTotals;
}

/**
 * Each device once, from the first source that reports it, the server's devices first.
 *
 * Machines are distinguished by name; the server's keeps its name even if a kernel in a container
 * reports its devices. Process ids are valid on one machine only.
 */
export function unionOf(sources: readonly Source[], server: Source | undefined): SourcedDevice[] {
  const inOrder = server === undefined ? sources : [server, ...sources];
  const uuids = new Set(inOrder.flatMap(({ devices }) => devices.map(({ uuid }) => uuid)));
  return [...uuids].flatMap((uuid) => {
    const reported = sources.flatMap((source) => {
      const device = source.devices.find((each) => each.uuid === uuid);
      return device === undefined ? [] : [{ ...source, device }];
    });
    const [first] = reported;
    if (first === undefined) {
      return [];
    }
    const neighbours = reported.filter(({ machine }) => machine === first.machine);
    const owners = new Map(neighbours.flatMap((each) => [...each.owners]));
    const isServers = server?.devices.some((each) => each.uuid === uuid) ?? false;
    return [{ ...first, owners, machine: isServers ? (server?.machine ?? "") : first.machine }];
  });
}
