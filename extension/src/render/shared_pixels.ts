// Minimum opacity of a non-empty pixel, so that a single tiny block is visible.
const LEAST_STRENGTH = 0.3;
/** The weight of a whole pixel; sums of integers cancel exactly. */
const WHOLE = 2 ** 15;
/** Two sums are packed into 53 bits: this factor times the first, plus the second. */
const SHIFT = 2 ** 26;

/** The values that a colour of a palette adds to the two numbers of a fully covered pixel. */
export interface ColourSteps {
  readonly shareAndRed: Float64Array<ArrayBuffer>;
  readonly greenAndBlue: Float64Array<ArrayBuffer>;
}

/** The steps of colours 0xAABBGGRR. */
export function colourSteps(colours: ArrayLike<number>): ColourSteps {
  return {
    shareAndRed: Float64Array.from(colours, (colour) => SHIFT + (colour & 0xff)),
    greenAndBlue: Float64Array.from(
      colours,
      (colour) => ((colour >> 8) & 0xff) * SHIFT + ((colour >> 16) & 0xff),
    ),
  };
}

/** Pixels shared by several small rectangles, each with its share of the pixel. */
export class SharedPixels {
  readonly #width: number;
  /**
   * Two numbers for each pixel, one of its share and red, the other of green and blue, stored as
   * differences from the pixel to the left, so that long rectangles cost as much as short ones.
   * Rows follow each other, each with one extra pixel, so that the start and end of a short
   * rectangle are in the same cache line.
   */
  readonly #steps: Float64Array<ArrayBuffer>;
  /** Whether there are steps at a pixel: a byte to look at instead of sixteen. */
  readonly #isStepped: Uint8Array<ArrayBuffer>;

  constructor(width: number, height: number) {
    this.#width = width;
    this.#steps = new Float64Array((width + 1) * height * 2);
    this.#isStepped = new Uint8Array((width + 1) * height);
  }

  add(
    fromX: number,
    toX: number,
    fromY: number,
    toY: number,
    share: number,
    { shareAndRed, greenAndBlue }: ColourSteps,
    colour: number,
  ): void {
    const part = Math.max((share * WHOLE + 0.5) | 0, 1);
    const red = part * (shareAndRed[colour] ?? SHIFT);
    const blue = part * (greenAndBlue[colour] ?? 0);
    const steps = this.#steps;
    for (let y = fromY; y < toY; y += 1) {
      const row = y * (this.#width + 1);
      const begin = (row + fromX) * 2;
      const end = (row + toX) * 2;
      this.#isStepped[row + fromX] = this.#isStepped[row + toX] = 1;
      steps[begin] = (steps[begin] ?? 0) + red;
      steps[begin + 1] = (steps[begin + 1] ?? 0) + blue;
      steps[end] = (steps[end] ?? 0) - red;
      steps[end + 1] = (steps[end + 1] ?? 0) - blue;
    }
  }

  /** Blends each shared pixel in proportion to its share, and clears all. */
  blendInto({ buffer }: Uint32Array<ArrayBuffer>): void {
    // Engines compute with signed numbers of 32 bits, but not with unsigned ones.
    const pixels = new Int32Array(buffer);
    const isStepped = this.#isStepped;
    const steps = this.#steps;
    const stride = this.#width + 1;
    for (let at = isStepped.indexOf(1); at >= 0; at = isStepped.indexOf(1, at)) {
      const y = Math.floor(at / stride);
      const end = (y + 1) * stride;
      let red = 0;
      let blue = 0;
      for (let next = at; at < end; at = next) {
        red += steps[2 * at] ?? 0;
        blue += steps[2 * at + 1] ?? 0;
        isStepped[at] = steps[2 * at] = steps[2 * at + 1] = 0;
        do {
          next += 1;
        } while (next < end && !isStepped[next]);
        let below = 0;
        let mixed = 0;
        for (let pixel = at - y; pixel < next - y && red > 0; pixel += 1) {
          const under = pixels[pixel] ?? 0;
          if (mixed === 0 || under !== below) {
            below = under;
            mixed = mix(below, red, blue);
          }
          pixels[pixel] = mixed;
        }
      }
    }
  }
}

/** A pixel blended with sums of colours and shares. */
function mix(below: number, shareAndRed: number, greenAndBlue: number): number {
  const sum = Math.floor(shareAndRed / SHIFT);
  const red = shareAndRed - sum * SHIFT;
  const green = Math.floor(greenAndBlue / SHIFT);
  const blue = greenAndBlue - green * SHIFT;
  const share = sum / WHOLE;
  const strength = share < LEAST_STRENGTH ? LEAST_STRENGTH : share > 1 ? 1 : share;
  const isEmpty = below >>> 24 === 0;
  const kept = isEmpty ? 0 : 1 - strength;
  const alpha = isEmpty ? (255 * strength + 0.5) | 0 : 0xff;
  const part = (isEmpty ? 1 : strength) / sum;
  const mixedBlue = (((below >> 16) & 0xff) * kept + blue * part + 0.5) | 0;
  const mixedGreen = (((below >> 8) & 0xff) * kept + green * part + 0.5) | 0;
  const mixedRed = ((below & 0xff) * kept + red * part + 0.5) | 0;
  return (alpha << 24) | (mixedBlue << 16) | (mixedGreen << 8) | mixedRed;
}
