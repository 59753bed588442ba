/** A linear map from data to pixels and back. */
export interface Scale {
  readonly from: number;
  readonly to: number;
  readonly fromPx: number;
  readonly toPx: number;
}

export function toPixel(scale: Scale, value: number): number {
  const share = (value - scale.from) / (scale.to - scale.from || 1);
  return scale.fromPx + share * (scale.toPx - scale.fromPx);
}

export function fromPixel(scale: Scale, px: number): number {
  const share = (px - scale.fromPx) / (scale.toPx - scale.fromPx || 1);
  return scale.from + share * (scale.to - scale.from);
}

/** About `count` round values in [from, to], with steps of 1, 2 or 5 times a power of ten. */
export function decimalTicks(from: number, to: number, count: number): number[] {
  const step = decimalStep((to - from) / Math.max(count, 1));
  return multiples(from, to, step);
}

const CLOCK_STEPS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 172800,
  432000, 864000,
];

/** Round values of time in ns, in steps of clocks, of their parts, or of powers of ten. */
export function clockTicks(from: number, to: number, count: number): number[] {
  const wanted = (to - from) / Math.max(count, 1) / 1e9;
  const seconds = wanted > 0.5 ? CLOCK_STEPS_S.find((step) => step >= wanted) : undefined;
  return seconds === undefined ? decimalTicks(from, to, count) : multiples(from, to, seconds * 1e9);
}

/** Round values in bytes, in steps of 1, 2, 4, ... 512 of a binary unit. */
export function binaryTicks(from: number, to: number, count: number): number[] {
  const wanted = Math.max((to - from) / Math.max(count, 1), 1);
  return multiples(from, to, 2 ** Math.ceil(Math.log2(wanted)));
}

function decimalStep(wanted: number): number {
  if (!(wanted > 0)) {
    return 1;
  }
  const power = 10 ** Math.floor(Math.log10(wanted));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= wanted) ?? 10;
  return factor * power;
}

function multiples(from: number, to: number, step: number): number[] {
  const ticks: number[] = [];
  const last = Math.floor(to / step + 1e-9);
  for (let index = Math.ceil(from / step - 1e-9) + 0; index <= last; index += 1) {
    ticks.push(index * step);
  }
  return ticks;
}
