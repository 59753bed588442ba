/** Collects what has to be undone, and undoes it in reverse. */
export class Scope {
  readonly #undo: (() => void)[] = [];

  defer(undo: () => void): void {
    this.#undo.push(undo);
  }

  /** Disposes of something together with the scope. */
  use(disposable: { dispose: () => void }): void {
    this.defer(() => {
      disposable.dispose();
    });
  }

  /** Adds an event listener that lives as long as the scope. */
  listen<K extends keyof HTMLElementEventMap>(
    target: HTMLElement,
    type: K,
    listener: (event: HTMLElementEventMap[K]) => void,
    options: AddEventListenerOptions = {},
  ): void {
    target.addEventListener(type, listener, options);
    this.defer(() => {
      target.removeEventListener(type, listener, options);
    });
  }

  dispose(): void {
    for (let undo = this.#undo.pop(); undo !== undefined; undo = this.#undo.pop()) {
      undo();
    }
  }
}
