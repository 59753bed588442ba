import { Signal } from "../base/signal.ts";
import { readTables, type Batches, type LiveStatistics } from "../wire/batches.ts";
import { GrowingRecording } from "../model/growing_recording.ts";

const FIRST_RETRY_MS = 4000;
const LONGEST_RETRY_MS = 60_000;

/** A snapshot of which some parts have come. */
interface Arriving {
  readonly number: number;
  readonly recording: GrowingRecording;
  nextPart: number;
}

/** Puts together what the kernel sends, and asks for what is missing. */
export class Follower {
  /** Goes up with each message that changed something. */
  readonly revision = new Signal(0);
  #recording = new GrowingRecording();
  #number = -1;
  #arriving: Arriving | undefined;
  #isLive = true;
  #hasAny = true;
  #recordings = 1;
  #comesLate = false;
  #durationNs = 0;
  #statistics: LiveStatistics | undefined;
  #newsMs: number | undefined;
  #askedMs: number | undefined;
  #retryMs = FIRST_RETRY_MS;
  readonly #ask: (since: number) => void;
  readonly #now: () => number;

  /** `ask` requests all messages after a number; `now` is a clock in ms. */
  constructor(ask: (since: number) => void, now: () => number) {
    this.#ask = ask;
    this.#now = now;
  }

  get recording(): GrowingRecording {
    return this.#recording;
  }

  /** The number of the last message that is taken in, or -1. */
  get number(): number {
    return this.#number;
  }

  /** Whether more may come. */
  get isLive(): boolean {
    return this.#isLive;
  }

  /** Whether what is new comes only when a cell has ended. */
  get comesLate(): boolean {
    return this.#comesLate;
  }

  get durationNs(): number {
    return this.#durationNs;
  }

  /** The latest numbers of the recorder. */
  get statistics(): LiveStatistics | undefined {
    return this.#statistics;
  }

  /** Whether something was asked for and has not come. */
  get isWaiting(): boolean {
    return this.#askedMs !== undefined;
  }

  /** For how long nothing has come, in ms. */
  get silentMs(): number {
    return this.#now() - (this.#newsMs ?? this.#askedMs ?? this.#now());
  }

  /** Whether the kernel has something to show. */
  get hasAny(): boolean {
    return this.#hasAny;
  }

  /** How many recordings there were, one after the other. */
  get recordings(): number {
    return this.#recordings;
  }

  /** Begins with another recording. */
  begin(): void {
    this.#recordings += 1;
    this.#recording = new GrowingRecording();
    this.#number = -1;
    this.#arriving = undefined;
    [this.#isLive, this.#hasAny] = [true, true];
    this.#durationNs = 0;
    this.#statistics = undefined;
    this.revision.value += 1;
  }

  /** Takes in that there is nothing to show yet. */
  waitForAny(): void {
    this.#hasAny = false;
    this.#askedMs = undefined;
    this.revision.value += 1;
  }

  /** Asks for everything after the last message that is known. */
  catchUp(): void {
    this.#askedMs = this.#now();
    this.#newsMs = undefined;
    this.#ask(this.#number);
  }

  /** Takes in the number of the kernel's last message, and asks for what is missing up to it. */
  notice(number: number): void {
    if (number > this.#number) {
      this.#askAgain();
    }
  }

  receive(message: Batches, buffers: readonly DataView[]): void {
    this.#newsMs = this.#now();
    this.#isLive = message.recording;
    this.#comesLate = !message.live;
    this.#statistics = message.statistics ?? this.#statistics;
    if (message.parts > 0) {
      this.#takeSnapshot(message, buffers);
    } else if (message.number === this.#number + 1) {
      this.#append(this.#recording, message, buffers);
      this.#take(message.number, message.durationNs);
    } else if (message.number > this.#number) {
      this.#askAgain();
    } else if (message.number === this.#number) {
      this.#take(message.number, message.durationNs);
    }
    this.revision.value += 1;
  }

  #takeSnapshot(message: Batches, buffers: readonly DataView[]): void {
    const { number, part, parts } = message;
    if (number <= this.#number) {
      return;
    }
    if (part === 0) {
      const recording = new GrowingRecording(message.initialEvents);
      const [fromNs, toNs] = message.window ?? [];
      recording.gpu.bounds =
        fromNs === undefined || toNs === undefined ? undefined : { fromNs, toNs };
      this.#arriving = { number, recording, nextPart: 0 };
    }
    const arriving = this.#arriving;
    if (arriving?.number !== number || arriving.nextPart !== part) {
      this.#arriving = undefined;
      this.#askAgain();
      return;
    }
    this.#append(arriving.recording, message, buffers);
    arriving.recording.settle();
    arriving.nextPart += 1;
    if (arriving.nextPart === parts) {
      this.#recording = arriving.recording;
      this.#arriving = undefined;
      this.#durationNs = 0;
      this.#take(number, message.durationNs);
    }
  }

  #append(recording: GrowingRecording, message: Batches, buffers: readonly DataView[]): void {
    for (const table of readTables(message, buffers)) {
      recording.append(table);
    }
  }

  #take(number: number, durationNs: number): void {
    this.#number = number;
    this.#durationNs = Math.max(this.#durationNs, durationNs);
    this.#recording.extend(this.#durationNs);
    this.#askedMs = undefined;
    this.#retryMs = FIRST_RETRY_MS;
  }

  /** A busy kernel answers late; what it is asked meanwhile it would answer all at once. */
  #askAgain(): void {
    const waitedMs = this.#now() - (this.#askedMs ?? -Infinity);
    if (waitedMs >= this.#retryMs) {
      this.#retryMs =
        this.#askedMs === undefined
          ? FIRST_RETRY_MS
          : Math.min(2 * this.#retryMs, LONGEST_RETRY_MS);
      this.#askedMs = this.#now();
      this.#ask(this.#number);
    }
  }
}
