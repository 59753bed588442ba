import { type Kernel, KernelMessage } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";
import type { JSONObject } from "@lumino/coreutils";
import { Signal, type ISignal } from "@lumino/signaling";

import { PanelComm } from "./panel_comm.ts";
import { readPanelMessage, type KernelState, type PanelRequest } from "./panel_messages.ts";

// An expression leaves no name behind in the user's namespace, and imports nothing new.
const OFFER =
  "__import__('sys').modules.get('gpuviz') and " +
  "__import__('gpuviz.notebook.panel', fromlist=['offer_panel']).offer_panel()";
/** A kernel that is busy does not tell what it is; it is asked all the same. */
const INFO_MS = 3000;
const SUBSHELL_MS = 2000;
const SHOW_AGAIN_MS = 20_000;
const ASK_AGAIN_MS = 3000;
const LONGEST_HISTORY = 120;

/**
 * What is known of a kernel: `absent` has no gpuviz, `unfit` one that cannot be spoken to, `foreign`
 * no Python; `waiting` has not answered.
 */
export type LinkStatus =
  "waiting" | "absent" | "unfit" | "foreign" | "present" | "dead" | "disconnected";

/**
 * A conversation with the gpuviz of one kernel, on a connection and a subshell of its own.
 *
 * The notebook's connection stays as it is; where the kernel has no subshells, answers wait for the
 * running cell.
 */
export class KernelLink {
  readonly kernelId: string;
  /** Allocated bytes of all devices, a number a second, the latest last. */
  readonly history: number[] = [];
  readonly #changed = new Signal<this, void>(this);
  readonly #connection: Kernel.IKernelConnection;
  readonly #words: TranslationBundle;
  readonly #comm: PanelComm;
  #status: LinkStatus = "waiting";
  #answersWhileBusy = false;
  #state: KernelState | undefined;
  #complaint = "";
  /** Tells the kernel's process from one before a restart. */
  #process = "";
  readonly #watchers = new Set<symbol>();
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
    return this.#answersWhileBusy;
  }

  /** Whether the kernel runs a cell. */
  get isBusy(): boolean {
    return this.#connection.status === "busy";
  }

  /** Why the kernel's gpuviz is `unfit`, in Python's words. */
  get complaint(): string {
    return this.#complaint;
  }

  /** What gpuviz told last; undefined before. */
  get state(): KernelState | undefined {
    return this.#state;
  }

  /** Lets the kernel tell its state until the returned function is called. */
  watch(): () => void {
    const watcher = Symbol("watcher");
    this.#watchers.add(watcher);
    this.#lookOrNot();
    return () => {
      this.#watchers.delete(watcher);
      this.#lookOrNot();
    };
  }

  /** Asks for something and returns the kernel's sentence; rejects with its complaint. */
  request(kind: PanelRequest, options: JSONObject = {}): Promise<string> {
    return this.#comm.request(
      kind,
      options,
      this.#words.__("gpuviz is not loaded in this kernel."),
    );
  }

  /** Runs `%load_ext gpuviz`, after the cell that runs, unless gpuviz is there already. */
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
              "gpuviz is not installed in the kernel's environment. Run `%pip install gpuviz` in a cell.",
            )
          : `${ename}: ${evalue}`,
      );
    }
    await this.#ask();
  }

  dispose(): void {
    this.#watchers.clear();
    this.#lookOrNot();
    this.#comm.close();
    Signal.clearData(this);
    this.#connection.dispose();
  }

  #lookOrNot(): void {
    const isShown = this.#watchers.size > 0;
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

  /** Gets a subshell if the kernel has such, and asks for gpuviz. */
  async #meet(): Promise<void> {
    this.#comm.forget(this.#words.__("The connection to the kernel was lost."));
    try {
      const info = await within(INFO_MS, this.#connection.info);
      if (info !== undefined && info.language_info.name !== "python") {
        this.#become("foreign");
        return;
      }
      await this.#getSubshell();
      await this.#ask();
    } catch {
      // A kernel that ends or restarts answers no more; its successor is met anew.
    }
  }

  async #getSubshell(): Promise<void> {
    const connection = this.#connection;
    // JupyterLab has subshells from 4.4 on.
    if (!("requestCreateSubshell" in connection) || connection.subshellId) {
      return;
    }
    const future = connection.requestCreateSubshell({});
    const reply = await within(SUBSHELL_MS, future.done);
    const id = reply?.content.subshell_id;
    connection.subshellId = id ?? null;
    this.#answersWhileBusy = id !== undefined;
  }

  /** A cell that runs for long may import gpuviz and record at its beginning. */
  #askWhileBusy(): void {
    if (this.#status === "absent" && this.isBusy && this.#answersWhileBusy) {
      void this.#ask();
    }
  }

  /** Asks for gpuviz, and opens a comm if it is there. */
  async #ask(): Promise<void> {
    const content = {
      code: "",
      silent: true,
      store_history: false,
      user_expressions: { gpuviz: OFFER },
    };
    const reply = await this.#connection.requestExecute(content).done;
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
      this.#comm.open();
      this.#comm.look(this.#isShown);
    }
    this.#become("present");
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

  /** A restart from elsewhere shows only in that another process speaks. */
  #noticeProcess(message: KernelMessage.IIOPubMessage): void {
    // A status of these is the server's, not the kernel's.
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
      // While it connects for the first time nothing is lost.
      if (this.#status === "present" || this.#status === "absent") {
        this.#become("disconnected");
      }
    } else if (this.#status === "disconnected") {
      this.#become("waiting");
      void this.#meet();
    }
  }

  #forget(status: LinkStatus): void {
    // The subshell has ended with its kernel; nobody can be asked to delete it.
    this.#connection.subshellId = null;
    this.#answersWhileBusy = false;
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

/** What a promise gives within some time, undefined if it does not. */
function within<T>(milliseconds: number, promise: Promise<T>): Promise<T | undefined> {
  const late = new Promise<undefined>((resolve) => setTimeout(resolve, milliseconds, undefined));
  return Promise.race([promise, late]);
}
