import type { Signal } from "./signal.ts";

/** Collects disposables, and disposes of them in reverse order. */
export class Scope {
  readonly #undo: (() => void)[] = [];

  defer(undo: () => void): void {
    this.#undo.push(undo);
  }

  /** Disposes of something together with the scope. */
  use(disposable: { dispose: () => void }): void {
    this.defer(() => disposable.dispose());
  }

  /** Appends elements that are removed with the scope. */
  append(parent: Element, ...elements: readonly Element[]): void {
    parent.append(...elements);
    this.defer(() => elements.forEach((each) => each.remove()));
  }

  /** Calls `changed` after each change of a signal. */
  watch(changed: () => void, ...signals: readonly Signal<unknown>[]): void {
    signals.forEach((signal) => this.defer(signal.subscribe(changed)));
  }

  /**
   * Calls `show` now and after each change of a signal, with a scope that ends before the next
   * call.
   *
   * Returns a function that calls it again.
   */
  follow(show: (shown: Scope) => void, ...signals: readonly Signal<unknown>[]): () => void {
    let shown = new Scope();
    const again = (): void => {
      shown.dispose();
      shown = new Scope();
      show(shown);
    };
    again();
    this.watch(again, ...signals);
    this.defer(() => shown.dispose());
    return again;
  }

  /** Adds an event listener that lives as long as the scope. */
  listen<K extends keyof HTMLElementEventMap>(
    target: HTMLElement,
    type: K,
    listener: (event: HTMLElementEventMap[K]) => void,
    options: AddEventListenerOptions = {},
  ): void {
    target.addEventListener(type, listener, options);
    this.defer(() => target.removeEventListener(type, listener, options));
  }

  dispose(): void {
    for (let undo = this.#undo.pop(); undo !== undefined; undo = this.#undo.pop()) {
      undo();
    }
  }
}
