import { type Kernel, KernelMessage } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";
import type { JSONObject } from "@lumino/coreutils";
import { Signal, type ISignal } from "@lumino/signaling";

import { Inquiry, type Answer } from "./inquiry.ts";
import { PanelComm } from "./panel_comm.ts";
import {
  readPanelMessage,
  type Done,
  type KernelState,
  type PanelRequest,
} from "./panel_messages.ts";
import { replyTo } from "./replies.ts";

const SHOW_AGAIN_MS = 20_000;
const CHECK_MS = 3000;
/** Much longer than between two states of a shown panel. */
const SILENCE_MS = 10_000;
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
  readonly #inquiry: Inquiry;
  #status: LinkStatus = "waiting";
  #state: KernelState | undefined;
  #complaint = "";
  /** Identifies the kernel's process, to detect restarts. */
  #process = "";
  readonly #viewers = new Set<object>();
  #isShown = false;
  /** When the latest state arrived, or when the kernel was told to send it. */
  #heardAt = 0;
  /** Whether the notebook runs a cell; undefined until the kernel reports one. */
  #runsCell: boolean | undefined;
  readonly #repeating: number[] = [];
  #askAfter: string | undefined;

  constructor(connection: Kernel.IKernelConnection, words: TranslationBundle) {
    this.kernelId = connection.id;
    this.#connection = connection;
    this.#words = words;
    this.#comm = new PanelComm(connection);
    this.#inquiry = new Inquiry(connection, (answer) => this.#settle(answer));
    connection.iopubMessage.connect(this.#hear, this);
    connection.statusChanged.connect(this.#follow, this);
    connection.connectionStatusChanged.connect(this.#notice, this);
    void this.#inquiry.begin();
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
    return this.#runsCell ?? this.#connection.status === "busy";
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

  /** Runs `%load_ext gpuviz`, unless gpuviz is already imported. */
  async load(): Promise<void> {
    if (this.#status === "present") {
      return;
    }
    const content = { code: "%load_ext gpuviz", silent: true, store_history: false };
    const reply = await replyTo(this.#connection.requestExecute(content));
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
    await this.#inquiry.begin();
  }

  dispose(): void {
    this.#inquiry.end();
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
        window.setInterval(() => this.#check(), CHECK_MS),
      );
      this.#heardAt = performance.now();
    }
    this.#comm.look(isShown);
  }

  /** A long-running cell may import gpuviz and start recording; a panel that sends nothing is lost. */
  #check(): void {
    const isDue =
      (this.#status === "absent" && this.isBusy) || (this.#status === "present" && this.#isSilent);
    const isAnswered = this.answersWhileBusy || !this.isBusy;
    if (isDue && isAnswered && !this.#inquiry.isPending) {
      void this.#inquiry.begin();
    }
  }

  get #isSilent(): boolean {
    return this.#isShown && performance.now() - this.#heardAt > SILENCE_MS;
  }

  #settle({ status, complaint }: Answer): void {
    this.#complaint = complaint;
    if (status === "present" && (!this.#comm.isOpen || this.#isSilent)) {
      this.#comm.open();
      this.#comm.look(this.#isShown);
      this.#heardAt = performance.now();
    }
    this.#become(status);
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
    } else if (KernelMessage.isStatusMsg(message)) {
      this.#followCell(message);
    }
  }

  /** Other requests also make the kernel's status idle, as on subshells while a cell runs. */
  #followCell(message: KernelMessage.IStatusMsg): void {
    const { msg_id, msg_type, session, subshell_id } =
      message.parent_header as Partial<KernelMessage.IHeader>;
    if (msg_type !== "execute_request" || subshell_id || session === this.#connection.clientId) {
      return;
    }
    this.#runsCell = message.content.execution_state === "busy";
    if (!this.#runsCell && msg_id === this.#askAfter) {
      this.#askAfter = undefined;
      void this.#inquiry.begin();
    }
    this.#changed.emit();
  }

  #take(state: KernelState): void {
    this.#state = state;
    this.#heardAt = performance.now();
    this.history.push(state.devices.reduce((sum, { allocated }) => sum + allocated, 0));
    this.history.splice(0, this.history.length - LONGEST_HISTORY);
    this.#become("present");
  }

  /** Detects restarts by others, which are only visible as a new process. */
  #noticeProcess(message: KernelMessage.IIOPubMessage): void {
    const { session } = message.header;
    // The server's own messages have the session of the connection.
    if (session === this.#connection.clientId || session === this.#process) {
      return;
    }
    const isFirst = this.#process === "";
    this.#process = session;
    if (!isFirst) {
      this.#forget("waiting");
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
    if (status === "connected") {
      this.#runsCell = undefined;
      if (this.#status === "disconnected") {
        this.#become("waiting");
      }
      this.#inquiry.resume();
    } else if (status === "disconnected" || !this.#inquiry.isRenewing) {
      this.#lose(status);
    }
  }

  #lose(connection: Kernel.ConnectionStatus): void {
    const isConnecting = this.#status === "waiting" && connection === "connecting";
    if (!isConnecting && this.#status !== "foreign" && this.#status !== "dead") {
      this.#comm.forget(this.#words.__("The connection to the kernel was lost."));
      this.#become("disconnected");
      if (!this.#inquiry.isPending) {
        void this.#inquiry.begin();
      }
    }
  }

  #forget(status: "waiting" | "dead"): void {
    this.#inquiry.subshell.forget();
    this.#comm.forget(this.#words.__("The kernel has ended."));
    this.#state = undefined;
    this.#runsCell = undefined;
    this.history.length = 0;
    this.#become(status);
    if (status === "dead") {
      this.#inquiry.end();
    } else {
      void this.#inquiry.begin();
    }
  }

  #become(status: LinkStatus): void {
    this.#status = status;
    this.#changed.emit();
  }
}

function parentOf(message: KernelMessage.IIOPubMessage): string | undefined {
  return (message.parent_header as Partial<KernelMessage.IHeader>).msg_id;
}
