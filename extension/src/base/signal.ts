/** A value that notifies its subscribers of changes. */
export class Signal<T> {
  #value: T;
  readonly #subscribers = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set value(next: T) {
    if (next !== this.#value) {
      this.#value = next;
      for (const notify of [...this.#subscribers]) {
        notify();
      }
    }
  }

  /** Calls `notify` after each change until the returned function is called. */
  subscribe(notify: () => void): () => void {
    this.#subscribers.add(notify);
    return () => this.#subscribers.delete(notify);
  }
}
