import { type Kernel, KernelMessage } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";
import type { JSONObject } from "@lumino/coreutils";
import { Signal, type ISignal } from "@lumino/signaling";

import { PanelComm } from "./panel_comm.ts";
import {
  readPanelMessage,
  type Done,
  type KernelState,
  type PanelRequest,
} from "./panel_messages.ts";

// An expression, so that it adds no name to the user's namespace; it imports nothing new.
const OFFER =
  "__import__('sys').modules.get('gpuviz') and " +
  "__import__('gpuviz.notebook.panel', fromlist=['offer_panel']).offer_panel()";
/** Time to wait for kernel_info; a busy kernel does not answer, and is queried nevertheless. */
const INFO_MS = 3000;
const SUBSHELL_MS = 2000;
const SHOW_AGAIN_MS = 20_000;
const ASK_AGAIN_MS = 3000;
const LONGEST_HISTORY = 120;

/**
 * The state of a kernel: `absent` has not imported gpuviz, `unfit` has an incompatible gpuviz,
 * `foreign` is not Python; `waiting` has not answered.
 */
export type LinkStatus =
  "waiting" | "absent" | "unfit" | "foreign" | "present" | "dead" | "disconnected";

/**
 * A link to gpuviz in one kernel, on a separate connection and subshell.
 *
 * The notebook's connection is not used; if the kernel has no subshells, answers wait for the
 * running cell.
 */
export class KernelLink {
  readonly kernelId: string;
  /** Allocated bytes of all devices, one number per second, the latest last. */
  readonly history: number[] = [];
  readonly #changed = new Signal<this, void>(this);
  readonly #connection: Kernel.IKernelConnection;
  readonly #words: TranslationBundle;
  readonly #comm: PanelComm;
  #status: LinkStatus = "waiting";
  #state: KernelState | undefined;
  #complaint = "";
  /** Identifies the kernel's process, to detect restarts. */
  #process = "";
  readonly #viewers = new Set<object>();
  #isShown = false;
  readonly #repeating: number[] = [];
  #askAfter: string | undefined;

  constructor(connection: Kernel.IKernelConnection, words: TranslationBundle) {
    this.kernelId = connection.id;
    this.#connection = connection;
    this.#words = words;
    this.#comm = new PanelComm(connection);
    connection.iopubMessage.connect(this.#hear, this);
    connection.statusChanged.connect(this.#follow, this);
    connection.connectionStatusChanged.connect(this.#notice, this);
    void this.#meet();
  }

  /** Emitted when anything below has changed. */
  get changed(): ISignal<this, void> {
    return this.#changed;
  }

  get status(): LinkStatus {
    return this.#status;
  }

  /** Whether requests are answered while a cell runs. */
  get answersWhileBusy(): boolean {
    return Boolean(this.#connection.subshellId);
  }

  /** Whether the kernel runs a cell. */
  get isBusy(): boolean {
    return this.#connection.status === "busy";
  }

  /** Why the kernel's gpuviz is `unfit`, in Python's words. */
  get complaint(): string {
    return this.#complaint;
  }

  /** The latest state from gpuviz; undefined before the first. */
  get state(): KernelState | undefined {
    return this.#state;
  }

  /** Receives the kernel's state while at least one viewer is seen. */
  look(viewer: object, isSeen: boolean): void {
    if (isSeen) {
      this.#viewers.add(viewer);
    } else {
      this.#viewers.delete(viewer);
    }
    this.#lookOrNot();
  }

  /** Sends a request and returns the kernel's reply; rejects with its error message. */
  async request(kind: PanelRequest, options: JSONObject = {}): Promise<Omit<Done, "id">> {
    if (!this.#comm.isOpen) {
      throw new Error(this.#words.__("gpuviz is not loaded in this kernel."));
    }
    return this.#comm.request(kind, options);
  }

  /** Runs `%load_ext gpuviz`, after the running cell, unless gpuviz is already imported. */
  async load(): Promise<void> {
    if (this.#status === "present") {
      return;
    }
    const content = { code: "%load_ext gpuviz", silent: true, store_history: false };
    const reply = await this.#connection.requestExecute(content).done;
    if (reply.content.status === "error") {
      const { ename, evalue } = reply.content;
      throw new Error(
        ename === "ModuleNotFoundError"
          ? this.#words.__(
              "gpuviz is not installed in the kernel's environment. Install it there too.",
            )
          : `${ename}: ${evalue}`,
      );
    }
    await this.#ask();
  }

  dispose(): void {
    this.#viewers.clear();
    this.#lookOrNot();
    this.#comm.close();
    Signal.clearData(this);
    if (!this.#connection.supportsSubshells) {
      this.#connection.subshellId = null; // else dispose() throws when it tries to delete the subshell
    }
    this.#connection.dispose();
  }

  #lookOrNot(): void {
    const isShown = this.#viewers.size > 0;
    if (isShown === this.#isShown) {
      return;
    }
    this.#isShown = isShown;
    this.#repeating.splice(0).forEach(clearInterval);
    if (isShown) {
      this.#repeating.push(
        window.setInterval(() => this.#comm.look(true), SHOW_AGAIN_MS),
        window.setInterval(() => this.#askWhileBusy(), ASK_AGAIN_MS),
      );
    }
    this.#comm.look(isShown);
  }

  /** Requests a subshell unless the kernel lacks them, and looks for gpuviz. */
  async #meet(): Promise<void> {
    this.#comm.forget(this.#words.__("The connection to the kernel was lost."));
    try {
      const info = await within(INFO_MS, this.#connection.info);
      if (info !== undefined && info.language_info.name !== "python") {
        this.#become("foreign");
        return;
      }
      if (info === undefined || this.#connection.supportsSubshells) {
        await this.#getSubshell();
      }
      await this.#ask();
    } catch {
      // A kernel that ends or restarts no longer answers; the next one is connected separately.
    }
  }

  async #getSubshell(): Promise<void> {
    const connection = this.#connection;
    // JupyterLab supports subshells from 4.4 on.
    if (!("requestCreateSubshell" in connection) || connection.subshellId) {
      return;
    }
    // requestCreateSubshell() throws until the kernel reports its features; a busy one has not.
    const { clientId: session, username } = connection;
    const request = KernelMessage.createMessage({
      msgType: "create_subshell_request",
      channel: "control",
      session,
      username,
      content: {},
    } as KernelMessage.IOptions<KernelMessage.ICreateSubshellRequestMsg>);
    const created = replyTo(connection.sendControlMessage(request, true)).then(({ content }) => {
      connection.subshellId =
        (content as KernelMessage.ICreateSubshellReplyMsg["content"]).subshell_id ?? null;
      return true;
    });
    if ((await within(SUBSHELL_MS, created)) === undefined) {
      created.then(() => this.#moveToSubshell()).catch(() => undefined); // the kernel may end first
    }
  }

  /** Repeats over a late subshell what still waits for the running cell. */
  async #moveToSubshell(): Promise<void> {
    if (this.#comm.isOpen) {
      this.#openComm();
    } else {
      await this.#ask();
    }
  }

  /** A long-running cell may import gpuviz and start recording. */
  #askWhileBusy(): void {
    if (this.#status === "absent" && this.isBusy && this.answersWhileBusy) {
      void this.#ask();
    }
  }

  /** Looks for gpuviz, and opens a comm if it is imported. */
  async #ask(): Promise<void> {
    const content = {
      code: "",
      silent: true,
      store_history: false,
      user_expressions: { gpuviz: OFFER },
    };
    const reply = await replyTo(this.#connection.requestExecute(content));
    if (reply.content.status !== "ok") {
      return;
    }
    const answer = reply.content.user_expressions["gpuviz"] as JSONObject | undefined;
    if (answer?.["status"] === "error") {
      this.#complaint = `${String(answer["ename"])}: ${String(answer["evalue"])}`;
      this.#become("unfit");
      return;
    }
    const text = (answer?.["data"] as JSONObject | undefined)?.["text/plain"];
    if (text === undefined || text === "None") {
      this.#become("absent");
      return;
    }
    if (!this.#comm.isOpen) {
      this.#openComm();
    }
    this.#become("present");
  }

  #openComm(): void {
    this.#comm.open();
    this.#comm.look(this.#isShown);
  }

  #hear(_: Kernel.IKernelConnection, message: KernelMessage.IIOPubMessage): void {
    this.#noticeProcess(message);
    if (KernelMessage.isCommMsgMsg(message)) {
      const said = readPanelMessage(message.content.data as JSONObject);
      if (said !== undefined && "state" in said) {
        this.#take(said.state);
      } else if (said !== undefined) {
        this.#comm.settle(said.done);
      }
    } else if (KernelMessage.isExecuteInputMsg(message)) {
      if (this.#status !== "present" && message.content.code.includes("gpuviz")) {
        this.#askAfter = parentOf(message);
      }
    } else if (KernelMessage.isStatusMsg(message) && parentOf(message) === this.#askAfter) {
      if (message.content.execution_state === "idle") {
        this.#askAfter = undefined;
        void this.#ask();
      }
    }
  }

  #take(state: KernelState): void {
    this.#state = state;
    this.history.push(state.devices.reduce((sum, { allocated }) => sum + allocated, 0));
    this.history.splice(0, this.history.length - LONGEST_HISTORY);
    this.#become("present");
  }

  /** Detects restarts by others, which are only visible as a new process. */
  #noticeProcess(message: KernelMessage.IIOPubMessage): void {
    // These status messages are from the server, not from the kernel.
    const isServers =
      KernelMessage.isStatusMsg(message) &&
      !["busy", "idle", "starting"].includes(message.content.execution_state);
    const { session } = message.header;
    if (isServers || session === this.#process) {
      return;
    }
    const isFirst = this.#process === "";
    this.#process = session;
    if (!isFirst) {
      this.#forget("waiting");
      void this.#meet();
    }
  }

  #follow(_: Kernel.IKernelConnection, status: Kernel.Status): void {
    if (status === "dead") {
      this.#forget("dead");
    } else if (status === "restarting" || status === "autorestarting") {
      this.#forget("waiting");
    }
    this.#changed.emit();
  }

  #notice(_: Kernel.IKernelConnection, status: Kernel.ConnectionStatus): void {
    if (status !== "connected") {
      // Nothing is lost during the first connection.
      if (this.#status === "present" || this.#status === "absent") {
        this.#become("disconnected");
      }
    } else if (this.#status === "disconnected") {
      this.#become("waiting");
      void this.#meet();
    }
  }

  #forget(status: LinkStatus): void {
    // The subshell has ended with its kernel, so it cannot be deleted.
    this.#connection.subshellId = null;
    this.#comm.forget(this.#words.__("The kernel has ended."));
    this.#state = undefined;
    this.history.length = 0;
    this.#become(status);
  }

  #become(status: LinkStatus): void {
    this.#status = status;
    this.#changed.emit();
  }
}

function parentOf(message: KernelMessage.IIOPubMessage): string | undefined {
  return (message.parent_header as Partial<KernelMessage.IHeader>).msg_id;
}

/** A kernel's reply, even if the idle status after it is lost, as happens while connecting. */
function replyTo<R>(future: {
  readonly done: Promise<R>;
  onReply: (message: R) => PromiseLike<void> | void;
}): Promise<R> {
  return new Promise((resolve, reject) => {
    future.onReply = resolve;
    future.done.then(resolve, reject);
  });
}

/** The result of a promise, or undefined after a timeout. */
function within<T>(milliseconds: number, promise: Promise<T>): Promise<T | undefined> {
  const late = new Promise<undefined>((resolve) => setTimeout(resolve, milliseconds, undefined));
  return Promise.race([promise, late]);
}
