import { type Kernel, KernelMessage } from "@jupyterlab/services";

import { replyTo } from "./replies.ts";

/** The subshell of a connection, which handles messages while a cell runs. */
export class Subshell {
  readonly #connection: Kernel.IKernelConnection;
  #created: Promise<void> | undefined;

  constructor(connection: Kernel.IKernelConnection) {
    this.#connection = connection;
  }

  /** Requests a subshell, once; rejects if the kernel or its connection ends. */
  create(): Promise<void> {
    const isThere =
      // JupyterLab supports subshells from 4.4 on.
      !("requestCreateSubshell" in this.#connection) || this.#connection.subshellId;
    return isThere ? Promise.resolve() : (this.#created ??= this.#request());
  }

  /** Forgets a pending request, because its reply may be lost. */
  renew(): void {
    this.#created = undefined;
  }

  /** Forgets the subshell, because it has ended with its kernel, and cannot be deleted. */
  forget(): void {
    this.renew();
    this.#connection.subshellId = null;
  }

  async #request(): Promise<void> {
    const connection = this.#connection;
    const { content } = await replyTo(this.#send("create_subshell_request", {}));
    const { subshell_id: id } = content as KernelMessage.ICreateSubshellReplyMsg["content"];
    if (connection.subshellId && id) {
      this.#send("delete_subshell_request", { subshell_id: id }); // an earlier request was late
    } else {
      connection.subshellId = id ?? null;
    }
  }

  /** The connection's own methods throw until the kernel reports its features; a busy one has not. */
  #send(
    msgType: "create_subshell_request" | "delete_subshell_request",
    content: { readonly subshell_id?: string },
  ): Kernel.IControlFuture {
    const { clientId: session, username } = this.#connection;
    const request = { msgType, channel: "control", session, username, content };
    return this.#connection.sendControlMessage(
      KernelMessage.createMessage(
        request as KernelMessage.IOptions<KernelMessage.ICreateSubshellRequestMsg>,
      ),
      true,
    );
  }
}
