/** `#rrggbb` as the little-endian pixel value 0xAABBGGRR of an ImageData. */
export function pixelOf(hex: string): number {
  const value = Number.parseInt(hex.trim().slice(1), 16);
  const red = (value >> 16) & 0xff;
  const green = (value >> 8) & 0xff;
  const blue = value & 0xff;
  return ((0xff << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** A pixel colour moved towards black (negative share) or white (positive share). */
export function shade(pixel: number, share: number): number {
  return mix(pixel, share < 0 ? 0xff000000 : 0xffffffff, Math.abs(share));
}

/** A pixel colour with a share of another in it. */
export function mix(pixel: number, other: number, share: number): number {
  const channel = (at: number): number => {
    const own = (pixel >>> at) & 0xff;
    return Math.round(own + (((other >>> at) & 0xff) - own) * share);
  };
  return ((0xff << 24) | (channel(16) << 16) | (channel(8) << 8) | channel(0)) >>> 0;
}

/** The relative luminance of a pixel colour, from 0 to 1, as defined by WCAG 2. */
export function luminance(pixel: number): number {
  const linear = (channel: number): number => {
    const value = (channel & 0xff) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(pixel) + 0.7152 * linear(pixel >> 8) + 0.0722 * linear(pixel >> 16);
}
