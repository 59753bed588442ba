import type { Wholes } from "../base/growing.ts";

/** What a reader calls the libraries that own memory. */
const FRAMEWORK_NAMES = ["", "CuPy", "PyTorch", "Numba", "cuda.core", "RMM", "JAX"];

export const nameFramework = (code: number): string => FRAMEWORK_NAMES[code] || "unknown";

export type Floats = Float64Array<ArrayBuffer>;
export type Bytes = Uint8Array<ArrayBuffer>;
export type Indices = Int32Array<ArrayBuffer>;

/** The allocator events of one device, in the order in which they happened. */
export interface MemoryEvents {
  readonly count: number;
  /** How many leading events describe what existed when the recording began. */
  readonly initialCount: number;
  readonly timeNs: Floats;
  readonly action: Bytes;
  readonly address: Floats;
  readonly size: Wholes;
  readonly requestedSize: Wholes;
  readonly stream: Wholes;
  readonly pool: Wholes;
  readonly stack: Wholes;
  readonly framework: Bytes;
  /** Whether blocks of more than one framework were allocated. */
  readonly isShared: boolean;
}
