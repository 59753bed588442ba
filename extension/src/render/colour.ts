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
  const target = share < 0 ? 0 : 255;
  const mix = (channel: number): number =>
    Math.round(channel + (target - channel) * Math.abs(share)) & 0xff;
  const red = mix(pixel & 0xff);
  const green = mix((pixel >> 8) & 0xff);
  const blue = mix((pixel >> 16) & 0xff);
  return ((0xff << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** The relative luminance of a pixel colour, from 0 to 1, as defined by WCAG 2. */
export function luminance(pixel: number): number {
  const linear = (channel: number): number => {
    const value = (channel & 0xff) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(pixel) + 0.7152 * linear(pixel >> 8) + 0.0722 * linear(pixel >> 16);
}
