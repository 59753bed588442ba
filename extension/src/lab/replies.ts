/** A kernel's reply, even if the idle status after it is lost, as happens while connecting. */
export function replyTo<R>(future: {
  readonly done: Promise<R>;
  onReply: (message: R) => PromiseLike<void> | void;
}): Promise<R> {
  return new Promise((resolve, reject) => {
    future.onReply = resolve;
    future.done.then(resolve, reject);
  });
}

/** The result of a promise, or undefined after a timeout. */
export function within<T>(milliseconds: number, promise: Promise<T>): Promise<T | undefined> {
  const late = new Promise<undefined>((resolve) => setTimeout(resolve, milliseconds, undefined));
  return Promise.race([promise, late]);
}
