const decoder = new TextDecoder();

/** A table of a FlatBuffer. A field that was left out is 0, empty or undefined. */
export class FlatTable {
  readonly #view: DataView;
  readonly #from: number;
  readonly #offsets: number;

  /** A table of a buffer; the root table without a place. */
  constructor(view: DataView, from = view.getUint32(0, true)) {
    this.#view = view;
    this.#from = from;
    this.#offsets = from - view.getInt32(from, true);
  }

  byte(field: number): number {
    const place = this.#placeOf(field);
    return place === 0 ? 0 : this.#view.getUint8(place);
  }

  short(field: number): number {
    const place = this.#placeOf(field);
    return place === 0 ? 0 : this.#view.getInt16(place, true);
  }

  int(field: number): number {
    const place = this.#placeOf(field);
    return place === 0 ? 0 : this.#view.getInt32(place, true);
  }

  /** A 64-bit integer, exact up to 2^53. */
  long(field: number): number {
    const place = this.#placeOf(field);
    return place === 0 ? 0 : Number(this.#view.getBigInt64(place, true));
  }

  text(field: number): string {
    const [from, length] = this.#vector(field);
    const { buffer, byteOffset } = this.#view;
    return decoder.decode(new Uint8Array(buffer, byteOffset + from, length));
  }

  table(field: number): FlatTable | undefined {
    const place = this.#placeOf(field);
    return place === 0 ? undefined : this.#follow(place);
  }

  tables(field: number): FlatTable[] {
    const [from, length] = this.#vector(field);
    return Array.from({ length }, (_, index) => this.#follow(from + 4 * index));
  }

  /** A list of pairs of 64-bit integers. */
  pairs(field: number): (readonly [first: number, second: number])[] {
    const [from, length] = this.#vector(field);
    const long = (place: number): number => Number(this.#view.getBigInt64(place, true));
    return Array.from({ length }, (_, index) => {
      const place = from + 16 * index;
      return [long(place), long(place + 8)];
    });
  }

  #placeOf(field: number): number {
    const entry = 4 + 2 * field;
    const isKnown = entry < this.#view.getUint16(this.#offsets, true);
    const offset = isKnown ? this.#view.getUint16(this.#offsets + entry, true) : 0;
    return offset === 0 ? 0 : this.#from + offset;
  }

  #follow(place: number): FlatTable {
    return new FlatTable(this.#view, place + this.#view.getUint32(place, true));
  }

  /** Where the items of a list begin, and their number. */
  #vector(field: number): readonly [from: number, length: number] {
    const place = this.#placeOf(field);
    const start = place + (place === 0 ? 0 : this.#view.getUint32(place, true));
    return place === 0 ? [0, 0] : [start + 4, this.#view.getUint32(start, true)];
  }
}
