import { Signal } from "../base/signal.ts";

export interface TimeRange {
  readonly fromNs: number;
  readonly toNs: number;
}

/** Shows everything received so far, in a time range or in all. */
export type ShowWindow = (window: TimeRange | undefined) => void;

/** The part of the time axis that all charts show. */
export class TimeWindow {
  readonly range: Signal<TimeRange>;
  #full: TimeRange;

  constructor(full: TimeRange) {
    this.#full = full;
    this.range = new Signal(full);
  }

  /** The whole recording so far, without a long time at the begin in which nothing happened. */
  get full(): TimeRange {
    return this.#full;
  }

  /** Takes in a longer recording; a range that shows all, or its end, goes on doing so. */
  extend(full: TimeRange): void {
    const { isFull, isAtEnd } = this;
    const { fromNs } = this.range.value;
    const later = full.toNs - this.#full.toNs;
    if (later > 0 || full.fromNs !== this.#full.fromNs) {
      this.#full = full;
      if (isFull) {
        this.reset();
      } else if (isAtEnd) {
        this.show(fromNs + later, full.toNs);
      }
    }
  }

  get isFull(): boolean {
    const { fromNs, toNs } = this.range.value;
    return fromNs === this.full.fromNs && toNs === this.full.toNs;
  }

  /** Whether the end is shown, so that a range goes along with it. */
  get isAtEnd(): boolean {
    return this.range.value.toNs === this.#full.toNs;
  }

  /** Shows as much as now, up to the end. */
  showEnd(): void {
    const { fromNs, toNs } = this.range.value;
    this.show(this.#full.toNs - (toNs - fromNs), this.#full.toNs);
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
