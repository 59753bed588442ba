// A pixel that holds anything is at least this strong, so that a lone tiny block can be seen.
const LEAST_STRENGTH = 0.3;
/** What a whole pixel counts; sums of whole numbers leave nothing over when all is taken off. */
const WHOLE = 2 ** 15;
/** Two sums share a number of 53 bits: this many times the one, and the other. */
const SHIFT = 2 ** 26;

/** Pixels that several small rectangles share, each with the part of the pixel that it covers. */
export class SharedPixels {
  readonly #width: number;
  readonly #height: number;
  /**
   * For each pixel two numbers, the one of its share and red, the other of green and blue: what they
   * are more than in the pixel left of it, so that a long rectangle costs no more than a short one.
   * Column after column, because blocks come in the order of their time; there is one column more
   * than pixels.
   */
  readonly #steps: Float64Array<ArrayBuffer>;
  /** Whether there are steps in a column. */
  readonly #isStepped: Uint8Array<ArrayBuffer>;

  constructor(width: number, height: number) {
    this.#width = width;
    this.#height = height;
    this.#steps = new Float64Array((width + 1) * height * 2);
    this.#isStepped = new Uint8Array(width + 1);
  }

  add(fromX: number, toX: number, fromY: number, toY: number, share: number, colour: number): void {
    const part = Math.max((share * WHOLE + 0.5) | 0, 1);
    const red = part * (SHIFT + (colour & 0xff));
    const blue = part * (((colour >> 8) & 0xff) * SHIFT + ((colour >> 16) & 0xff));
    const begin = (fromX * this.#height + fromY) * 2;
    const end = (toX * this.#height + fromY) * 2;
    this.#isStepped[fromX] = 1;
    this.#isStepped[toX] = 1;
    this.#addTo(begin, end, red, blue);
    // Most are in one row of pixels, and for these a loop would cost as much again.
    if (toY - fromY > 1) {
      for (let place = 2; place < 2 * (toY - fromY); place += 2) {
        this.#addTo(begin + place, end + place, red, blue);
      }
    }
  }

  #addTo(begin: number, end: number, red: number, blue: number): void {
    const steps = this.#steps;
    steps[begin] = (steps[begin] ?? 0) + red;
    steps[begin + 1] = (steps[begin + 1] ?? 0) + blue;
    steps[end] = (steps[end] ?? 0) - red;
    steps[end + 1] = (steps[end + 1] ?? 0) - blue;
  }

  /** Mixes each shared pixel into what is below it, as strongly as it is covered; empty then. */
  blendInto(pixels: Uint32Array<ArrayBuffer>): void {
    const sums = new Float64Array(this.#height * 2);
    const mixed = new Uint32Array(this.#height);
    const below = new Uint32Array(this.#height);
    for (let x = 0; x < this.#width; x += 1) {
      const isStepped = this.#isStepped[x] === 1;
      if (isStepped) {
        this.#step(x, sums, mixed);
      }
      this.#blendColumn(pixels, x, sums, below, mixed);
    }
    this.#clear(this.#width);
  }

  /** Adds the steps of a column to the sums; what was mixed from others no longer holds. */
  #step(x: number, sums: Float64Array<ArrayBuffer>, mixed: Uint32Array<ArrayBuffer>): void {
    const steps = this.#steps;
    const first = x * this.#height * 2;
    for (let place = 0; place < sums.length; place += 2) {
      const red = steps[first + place] ?? 0;
      const blue = steps[first + place + 1] ?? 0;
      if (red !== 0 || blue !== 0) {
        sums[place] = (sums[place] ?? 0) + red;
        sums[place + 1] = (sums[place + 1] ?? 0) + blue;
        mixed[place >> 1] = 0;
      }
    }
    this.#clear(x);
  }

  #clear(x: number): void {
    const first = x * this.#height * 2;
    this.#steps.fill(0, first, first + this.#height * 2);
    this.#isStepped[x] = 0;
  }

  #blendColumn(
    pixels: Uint32Array<ArrayBuffer>,
    x: number,
    sums: Float64Array<ArrayBuffer>,
    below: Uint32Array<ArrayBuffer>,
    mixed: Uint32Array<ArrayBuffer>,
  ): void {
    const width = this.#width;
    let pixel = x;
    for (let y = 0; y < mixed.length; y += 1, pixel += width) {
      const sum = sums[2 * y] ?? 0;
      if (sum > 0) {
        const under = pixels[pixel] ?? 0;
        if (mixed[y] === 0 || under !== below[y]) {
          below[y] = under;
          mixed[y] = mix(under, sum, sums[2 * y + 1] ?? 0);
        }
        pixels[pixel] = mixed[y] ?? 0;
      }
    }
  }
}

/** A pixel with sums of colours and of their shares mixed into it. */
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
  return ((alpha << 24) | (mixedBlue << 16) | (mixedGreen << 8) | mixedRed) >>> 0;
}
