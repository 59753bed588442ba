import { type Kernel, KernelMessage } from "@jupyterlab/services";
import { type JSONObject, UUID } from "@lumino/coreutils";

import { PANEL_TARGET } from "../wire/codes.ts";
import type { Done, PanelRequest } from "./panel_messages.ts";

type Answer = Omit<Done, "id">;

/** Messages to the panel of one kernel, over a comm on the subshell of a connection. */
export class PanelComm {
  readonly #connection: Kernel.IKernelConnection;
  readonly #viewer = UUID.uuid4();
  readonly #pending = new Map<string, (answer: Answer) => void>();
  #id = "";

  constructor(connection: Kernel.IKernelConnection) {
    this.#connection = connection;
  }

  get isOpen(): boolean {
    return this.#id !== "";
  }

  /** Opens a comm instead of the one before, which the kernel may not know. */
  open(): void {
    this.close();
    this.#id = UUID.uuid4();
    this.#send("comm_open", { comm_id: this.#id, target_name: PANEL_TARGET, data: {} });
  }

  close(): void {
    if (this.isOpen) {
      this.#send("comm_close", { comm_id: this.#id, data: {} });
    }
  }

  /** Sends whether this page shows the panel. */
  look(isShown: boolean): void {
    this.#say(isShown ? "show" : "hide", {});
  }

  /** Sends a request over the open comm and returns the kernel's reply, or rejects with its error. */
  request(kind: PanelRequest, options: JSONObject): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const id = UUID.uuid4();
      this.#pending.set(id, (answer) => {
        if (answer.failed) {
          reject(new Error(answer.text));
        } else {
          resolve(answer);
        }
      });
      this.#say(kind, { ...options, id });
    });
  }

  /** Handles a reply, which may be for another page. */
  settle(done: Done): void {
    this.#pending.get(done.id)?.(done);
    this.#pending.delete(done.id);
  }

  /** Closes the comm, and rejects pending requests with this reason. */
  forget(reason: string): void {
    this.#id = "";
    for (const settle of this.#pending.values()) {
      settle({ text: reason, failed: true });
    }
    this.#pending.clear();
  }

  #say(kind: PanelRequest | "show" | "hide", options: JSONObject): void {
    if (this.isOpen) {
      const data = { ...options, kind, viewer: this.#viewer };
      this.#send("comm_msg", { comm_id: this.#id, data });
    }
  }

  #send(msgType: "comm_open" | "comm_msg" | "comm_close", content: JSONObject): void {
    const { clientId, username, subshellId } = this.#connection;
    const message = KernelMessage.createMessage({
      msgType,
      channel: "shell",
      session: clientId,
      username,
      subshellId,
      content,
    } as unknown as KernelMessage.IOptions<KernelMessage.ICommMsgMsg<"shell">>);
    this.#connection.sendShellMessage(message, false, true);
  }
}
