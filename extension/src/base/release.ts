/**
 * Returns the memory of a buffer at once, not at the next garbage collection; arrays of it are empty.
 *
 * Does nothing in browsers that cannot transfer buffers.
 */
export function release(buffer: ArrayBuffer): void {
  (buffer as { transfer?: (bytes: number) => unknown }).transfer?.(0);
}
