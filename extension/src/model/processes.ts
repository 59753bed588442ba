import type { ArrowTable } from "../wire/arrow.ts";

/** A process of a merged recording. */
export interface Process {
  readonly name: string;
  /** Its devices, with their ordinals in the process. */
  readonly devices: ReadonlyMap<number, number>;
  readonly threads: ReadonlySet<number>;
}

/** The processes of a merged recording; none of a recording of one process. */
export class Processes {
  readonly all: Process[] = [];

  append(table: ArrowTable): void {
    const names = table.texts("name");
    const [devices, ordinals, threads] = ["devices", "ordinals", "threads"].map((name) =>
      table.lists(name),
    );
    names.forEach((name, row) => {
      const own = devices?.[row] ?? [];
      this.all.push({
        name,
        devices: new Map(own.map((device, place) => [device, ordinals?.[row]?.[place] ?? 0])),
        threads: new Set(threads?.[row]),
      });
    });
  }

  /** Whether a thread is of the process that used a device, or there is only one process. */
  isThreadOf(thread: number, device: number): boolean {
    const process = this.all.find(({ devices }) => devices.has(device));
    return process === undefined || process.threads.has(thread);
  }

  /** What a device is called after its process; undefined in a recording of one process. */
  deviceName(device: number): string | undefined {
    const process = this.all.find(({ devices }) => devices.has(device));
    return process && `${process.name} GPU ${process.devices.get(device) ?? 0}`;
  }
}
