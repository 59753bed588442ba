import { Signal } from "../base/signal.ts";

export interface TimeRange {
  readonly fromNs: number;
  readonly toNs: number;
}

/** The part of the time axis that all charts show. */
export class TimeWindow {
  readonly full: TimeRange;
  readonly range: Signal<TimeRange>;

  constructor(full: TimeRange) {
    this.full = full;
    this.range = new Signal(full);
  }

  get isFull(): boolean {
    const { fromNs, toNs } = this.range.value;
    return fromNs === this.full.fromNs && toNs === this.full.toNs;
  }

  reset(): void {
    this.range.value = this.full;
  }

  /** Shows a range, shifted and cut so that it stays inside the recording. */
  show(fromNs: number, toNs: number): void {
    const longest = this.full.toNs - this.full.fromNs;
    const width = Math.min(Math.max(toNs - fromNs, MINIMUM_WIDTH_NS), longest);
    const latest = this.full.toNs - width;
    const from = Math.min(Math.max(fromNs, this.full.fromNs), latest);
    this.range.value = width === longest ? this.full : { fromNs: from, toNs: from + width };
  }

  /** Makes the range `factor` times as long; the time `aroundNs` stays where it is. */
  zoom(factor: number, aroundNs: number): void {
    const { fromNs, toNs } = this.range.value;
    const width = Math.max((toNs - fromNs) * factor, MINIMUM_WIDTH_NS);
    const share = (aroundNs - fromNs) / (toNs - fromNs);
    this.show(aroundNs - share * width, aroundNs + (1 - share) * width);
  }

  /** Moves the range by a share of its length. */
  pan(share: number): void {
    const { fromNs, toNs } = this.range.value;
    const shift = share * (toNs - fromNs);
    this.show(fromNs + shift, toNs + shift);
  }
}

const MINIMUM_WIDTH_NS = 100;
