// A pixel that holds anything is at least this strong, so that a lone tiny block can be seen.
const LEAST_STRENGTH = 0.3;
const LEAST_SHARE = 1e-6;

/** Pixels that several small rectangles share, each with the part of the pixel that it covers. */
export class SharedPixels {
  readonly #width: number;
  readonly #share: Float32Array<ArrayBuffer>;
  readonly #red: Float32Array<ArrayBuffer>;
  readonly #green: Float32Array<ArrayBuffer>;
  readonly #blue: Float32Array<ArrayBuffer>;

  constructor(width: number, height: number) {
    this.#width = width;
    const channel = (): Float32Array<ArrayBuffer> => new Float32Array(width * height);
    this.#share = channel();
    this.#red = channel();
    this.#green = channel();
    this.#blue = channel();
  }

  add(fromX: number, toX: number, fromY: number, toY: number, share: number, colour: number): void {
    const part = Math.max(share, LEAST_SHARE);
    const red = part * (colour & 0xff);
    const green = part * ((colour >> 8) & 0xff);
    const blue = part * ((colour >> 16) & 0xff);
    for (let y = fromY; y < toY; y += 1) {
      const end = y * this.#width + toX;
      for (let pixel = y * this.#width + fromX; pixel < end; pixel += 1) {
        this.#share[pixel] = (this.#share[pixel] ?? 0) + part;
        this.#red[pixel] = (this.#red[pixel] ?? 0) + red;
        this.#green[pixel] = (this.#green[pixel] ?? 0) + green;
        this.#blue[pixel] = (this.#blue[pixel] ?? 0) + blue;
      }
    }
  }

  /** Mixes each shared pixel into what is below it, as strongly as it is covered. */
  blendInto(pixels: Uint32Array<ArrayBuffer>): void {
    for (let pixel = 0; pixel < pixels.length; pixel += 1) {
      const share = this.#share[pixel] ?? 0;
      if (share > 0) {
        const strength = Math.min(Math.max(share, LEAST_STRENGTH), 1);
        const red = (this.#red[pixel] ?? 0) / share;
        const green = (this.#green[pixel] ?? 0) / share;
        const blue = (this.#blue[pixel] ?? 0) / share;
        pixels[pixel] = mix(pixels[pixel] ?? 0, red, green, blue, strength);
      }
    }
  }
}

function mix(below: number, red: number, green: number, blue: number, strength: number): number {
  const isEmpty = below >>> 24 === 0;
  const channel = (value: number, shift: number): number => {
    const base = isEmpty ? value : (below >> shift) & 0xff;
    return Math.round(base + (value - base) * strength) << shift;
  };
  const alpha = isEmpty ? Math.round(255 * strength) : 0xff;
  return ((alpha << 24) | channel(blue, 16) | channel(green, 8) | channel(red, 0)) >>> 0;
}
