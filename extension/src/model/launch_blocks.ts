import { GrowingBytes, GrowingFloats, GrowingIds } from "../base/growing.ts";
import { RowsByKey } from "../base/rows_by_key.ts";
import type { ArrowTable } from "../wire/arrow.ts";

/** In the order of `DICTIONARIES` in gpuviz/tables.py. */
export const ACCESS_MODES = ["unknown", "read", "write", "read_write"] as const;

/** Which launch got a pointer into which block, in the order they came. */
export class LaunchBlocks {
  readonly #correlation = new GrowingIds();
  readonly #block = new GrowingFloats();
  readonly #mode = new GrowingBytes();
  readonly byCorrelation = new RowsByKey();

  append(table: ArrowTable): void {
    const correlation = table.numbers("correlation");
    this.#correlation.append(correlation);
    this.#block.append(table.numbers("block"));
    this.#mode.append(table.codes("mode", ACCESS_MODES));
    this.byCorrelation.append(correlation);
  }

  get count(): number {
    return this.#correlation.length;
  }

  get correlation(): Uint32Array<ArrayBuffer> {
    return this.#correlation.view();
  }

  /** Where the block begins. */
  get block(): Float64Array<ArrayBuffer> {
    return this.#block.view();
  }

  get mode(): Uint8Array<ArrayBuffer> {
    return this.#mode.view();
  }
}
