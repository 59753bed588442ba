import type { ArrowTable } from "../wire/arrow.ts";

type Three = readonly [x: number, y: number, z: number];

/** What a kernel was launched with; shared memory in bytes. */
export interface LaunchConfiguration {
  readonly grid: Three;
  readonly block: Three;
  readonly registers: number;
  readonly sharedMemory: number;
}

/** The threads of a whole launch. */
export function threadsOf({ grid, block }: LaunchConfiguration): number {
  return [...grid, ...block].reduce((product, length) => product * length, 1);
}

export class LaunchConfigurations {
  readonly #byId = new Map<number, LaunchConfiguration>();

  append(table: ArrowTable): void {
    const threes = (name: string): ((row: number) => Three) => {
      const [x, y, z] = ["x", "y", "z"].map((axis) => table.numbers(`${name}_${axis}`));
      return (row) => [x?.[row] ?? 0, y?.[row] ?? 0, z?.[row] ?? 0];
    };
    const [grid, block] = [threes("grid"), threes("block")];
    const registers = table.numbers("registers");
    const fixed = table.numbers("static_shared_memory");
    const dynamic = table.numbers("dynamic_shared_memory");
    table.numbers("id").forEach((id, row) => {
      this.#byId.set(id, {
        grid: grid(row),
        block: block(row),
        registers: registers[row] ?? 0,
        sharedMemory: (fixed[row] ?? 0) + (dynamic[row] ?? 0),
      });
    });
  }

  get(id: number): LaunchConfiguration | undefined {
    return this.#byId.get(id);
  }
}
