// A pixel that holds anything is at least this strong, so that a lone tiny block can be seen.
const LEAST_STRENGTH = 0.3;
/** What a whole pixel counts; sums of whole numbers leave nothing over when all is taken off. */
const WHOLE = 2 ** 19;
const CHANNELS = 4;

/** Pixels that several small rectangles share, each with the part of the pixel that it covers. */
export class SharedPixels {
  readonly #width: number;
  readonly #height: number;
  /**
   * For each pixel what its share, red, green and blue are more than those of the pixel before it,
   * so that a long rectangle costs no more than a short one. A row has one place more than pixels.
   */
  readonly #steps: Int32Array<ArrayBuffer>;

  constructor(width: number, height: number) {
    this.#width = width;
    this.#height = height;
    this.#steps = new Int32Array((width + 1) * height * CHANNELS);
  }

  add(fromX: number, toX: number, fromY: number, toY: number, share: number, colour: number): void {
    const steps = this.#steps;
    const part = Math.max((share * WHOLE + 0.5) | 0, 1);
    const red = part * (colour & 0xff);
    const green = part * ((colour >> 8) & 0xff);
    const blue = part * ((colour >> 16) & 0xff);
    for (let y = fromY; y < toY; y += 1) {
      const row = y * (this.#width + 1);
      const begin = (row + fromX) * CHANNELS;
      const end = (row + toX) * CHANNELS;
      steps[begin] = (steps[begin] ?? 0) + part;
      steps[begin + 1] = (steps[begin + 1] ?? 0) + red;
      steps[begin + 2] = (steps[begin + 2] ?? 0) + green;
      steps[begin + 3] = (steps[begin + 3] ?? 0) + blue;
      steps[end] = (steps[end] ?? 0) - part;
      steps[end + 1] = (steps[end + 1] ?? 0) - red;
      steps[end + 2] = (steps[end + 2] ?? 0) - green;
      steps[end + 3] = (steps[end + 3] ?? 0) - blue;
    }
  }

  /** Mixes each shared pixel into what is below it, as strongly as it is covered; empty then. */
  blendInto(pixels: Uint32Array<ArrayBuffer>): void {
    for (let y = 0; y < this.#height; y += 1) {
      this.#blendRow(pixels, y);
    }
    this.#steps.fill(0);
  }

  #blendRow(pixels: Uint32Array<ArrayBuffer>, y: number): void {
    const steps = this.#steps;
    let [share, red, green, blue] = [0, 0, 0, 0];
    let [below, mixed] = [0, 0];
    let isKnown = false;
    const first = y * this.#width;
    let at = y * (this.#width + 1) * CHANNELS;
    for (let pixel = first; pixel < first + this.#width; pixel += 1, at += CHANNELS) {
      const step = steps[at] ?? 0;
      const redStep = steps[at + 1] ?? 0;
      const greenStep = steps[at + 2] ?? 0;
      const blueStep = steps[at + 3] ?? 0;
      if ((step | redStep | greenStep | blueStep) !== 0) {
        share += step;
        red += redStep;
        green += greenStep;
        blue += blueStep;
        isKnown = false;
      }
      if (share > 0) {
        const under = pixels[pixel] ?? 0;
        if (!isKnown || under !== below) {
          below = under;
          mixed = mix(under, red, green, blue, share);
          isKnown = true;
        }
        pixels[pixel] = mixed;
      }
    }
  }
}

/** A pixel with sums of colours and of their shares mixed into it. */
function mix(below: number, red: number, green: number, blue: number, sum: number): number {
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
