const BINARY_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

// From this value on, three digits round to 1.00 of the next unit.
const LAST_BINARY = 1023.5;
const LAST_DECIMAL = 0.9995;

function threeDigits(value: number): string {
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

/** Bytes in IEC units with at least three significant digits: `1.50 MiB`, `512 B`. */
export function formatBytes(bytes: number): string {
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= LAST_BINARY && unit < BINARY_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const sign = bytes < 0 ? "-" : "";
  const digits = unit === 0 ? String(value) : threeDigits(value);
  return `${sign}${digits} ${BINARY_UNITS[unit] ?? "B"}`;
}

/** Bytes with their exact number: `1.50 MiB (1,572,864 B)`. */
export function formatExactBytes(bytes: number): string {
  return Math.abs(bytes) < 1024 ? `${bytes} B` : `${formatBytes(bytes)} (${formatCount(bytes)} B)`;
}

export function formatCount(count: number): string {
  return String(Math.trunc(count)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A count with its noun: `1 block`, `1,234 blocks`. */
export function counted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** A share of 1 as a percentage: `12 %`, `0.4 %`. */
export function formatShare(share: number): string {
  const percent = 100 * share;
  return `${percent.toFixed(percent >= 10 || percent === 0 ? 0 : 1)} %`;
}

export const TIME_UNITS = [
  { name: "s", ns: 1e9 },
  { name: "ms", ns: 1e6 },
  { name: "µs", ns: 1e3 },
  { name: "ns", ns: 1 },
] as const;

/** A duration in a suitable unit: `12.3 µs`, `1.50 s`, `2 min 05 s`. */
export function formatDuration(ns: number): string {
  const size = Math.abs(ns);
  const sign = ns < 0 ? "-" : "";
  if (size >= 60e9) {
    return sign + formatMinutes(Math.round(size / 1e9));
  }
  const unit = TIME_UNITS.find(({ ns }) => size >= LAST_DECIMAL * ns) ?? TIME_UNITS[3];
  const value = size / unit.ns;
  return `${sign}${unit.ns === 1 ? Math.round(value) : threeDigits(value)} ${unit.name}`;
}

function formatMinutes(totalSeconds: number): string {
  const hours = Math.floor(totalSeconds / 3600);
  const minutes = Math.floor(totalSeconds / 60) % 60;
  const seconds = String(totalSeconds % 60).padStart(2, "0");
  return hours > 0
    ? `${hours} h ${String(minutes).padStart(2, "0")} min ${seconds} s`
    : `${minutes} min ${seconds} s`;
}

/** A point in time, with enough digits to distinguish times that differ by `resolutionNs`. */
export function formatTime(ns: number, resolutionNs: number): string {
  const unit = TIME_UNITS.find((candidate) => Math.abs(ns) >= candidate.ns) ?? TIME_UNITS[3];
  const digits = Math.ceil(Math.log10(unit.ns / Math.max(resolutionNs, 1)) - 1e-9);
  if (ns >= CLOCK_FROM_NS) {
    return formatClock(ns, Math.max(digits, 0));
  }
  return `${(ns / unit.ns).toFixed(Math.min(Math.max(digits, 0), 9))} ${unit.name}`;
}

/** From this duration on, minutes are easier to read than seconds. */
export const CLOCK_FROM_NS = 120e9;

/** A point in time as `2:05.3 min` or `1:02:05 h`. */
export function formatClock(ns: number, digits: number): string {
  const whole = 10 ** Math.min(digits, 9);
  const total = Math.round((ns / 1e9) * whole) / whole;
  const [hours, minutes] = [Math.floor(total / 3600), Math.floor(total / 60) % 60];
  const seconds = (total % 60)
    .toFixed(Math.min(digits, 9))
    .padStart(digits > 0 ? digits + 3 : 2, "0");
  return hours > 0
    ? `${hours}:${String(minutes).padStart(2, "0")}:${seconds} h`
    : `${minutes}:${seconds} min`;
}

export function formatAddress(address: number): string {
  return `0x${address.toString(16)}`;
}
