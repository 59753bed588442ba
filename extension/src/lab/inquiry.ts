import type { Kernel, KernelMessage } from "@jupyterlab/services";
import { PromiseDelegate, type JSONObject } from "@lumino/coreutils";

import { replyTo, within } from "./replies.ts";
import { Subshell } from "./subshell.ts";

// An expression, so that it adds no name to the user's namespace; it imports nothing new.
const OFFER =
  "__import__('sys').modules.get('gpuviz') and " +
  "__import__('gpuviz.notebook.panel', fromlist=['offer_panel']).offer_panel()";
const OFFER_REQUEST = {
  code: "",
  silent: true,
  store_history: false,
  user_expressions: { gpuviz: OFFER },
};
/** Time to wait for kernel_info; a busy kernel does not answer, and is queried nevertheless. */
const INFO_MS = 3000;
const SUBSHELL_MS = 2000;
/** Doubled with each inquiry; after the first, longer than INFO_MS and SUBSHELL_MS together. */
const FIRST_ANSWER_MS = 3000;
const LONGEST_ANSWER_MS = 60_000;
/** Inquiries on a connection, before it is replaced. */
const ON_A_CONNECTION = 2;

/** What a kernel answers; see `LinkStatus`. */
export interface Answer {
  readonly status: "absent" | "unfit" | "foreign" | "present";
  /** Why the kernel's gpuviz is `unfit`, in Python's words. */
  readonly complaint: string;
}

/**
 * Asks a kernel for gpuviz until it answers.
 *
 * No message is certain to arrive. What is sent to a gateway is lost if that does not connect, and
 * all replies on a connection are lost if a server keeps an earlier one with the same session. So
 * inquiries are repeated at growing intervals, the first on the same connection, others on new ones.
 */
export class Inquiry {
  readonly subshell: Subshell;
  readonly #connection: Kernel.IKernelConnection;
  readonly #take: (answer: Answer) => void;
  /** How often the kernel was asked; undefined if no answer is due. */
  #asked: number | undefined;
  #answered = new PromiseDelegate<void>();
  #timer: number | undefined;
  #isRenewing = false;

  constructor(connection: Kernel.IKernelConnection, take: (answer: Answer) => void) {
    this.#connection = connection;
    this.#take = take;
    this.subshell = new Subshell(connection);
  }

  /** Whether an answer is due. */
  get isPending(): boolean {
    return this.#asked !== undefined;
  }

  /** Whether the connection ends because it is replaced. */
  get isRenewing(): boolean {
    return this.#isRenewing;
  }

  /** Asks now, and again until there is an answer; resolves then, or when this ends. */
  begin(): Promise<void> {
    this.#asked = 0;
    this.#repeat();
    return this.#answered.promise;
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#asked = undefined;
    this.#answered.resolve();
    this.#answered = new PromiseDelegate();
  }

  /** Asks on a connection that has just been established. */
  resume(): void {
    this.subshell.renew();
    this.#ask();
    this.#wait();
  }

  #repeat(): void {
    const { connectionStatus } = this.#connection;
    const asked = this.#asked ?? 0;
    if (connectionStatus === "connected" && asked < ON_A_CONNECTION) {
      this.#ask();
    } else if (connectionStatus !== "connecting") {
      this.#renew();
    }
    this.#wait();
  }

  #wait(): void {
    clearTimeout(this.#timer);
    const patience = Math.min(FIRST_ANSWER_MS * 2 ** (this.#asked ?? 0), LONGEST_ANSWER_MS);
    this.#timer = window.setTimeout(() => this.#repeat(), patience);
  }

  #ask(): void {
    this.#asked = (this.#asked ?? 0) + 1;
    // Requests to a kernel that ends are rejected; the next kernel is asked when this is repeated.
    this.#inquire().catch(() => undefined);
  }

  #renew(): void {
    this.#isRenewing = true;
    this.#connection.reconnect().catch(() => undefined); // which is repeated
    this.#isRenewing = false;
  }

  async #inquire(): Promise<void> {
    const connection = this.#connection;
    const info = await within(
      INFO_MS,
      connection.info.catch(() => undefined),
    );
    if (info !== undefined && info.language_info.name !== "python") {
      this.#settle({ status: "foreign", complaint: "" });
      return;
    }
    if (info === undefined || connection.supportsSubshells) {
      const created = this.subshell.create().then(() => true);
      if ((await within(SUBSHELL_MS, created)) === undefined) {
        created.then(() => this.#inquire()).catch(() => undefined); // the kernel may end first
      }
    }
    const reply = await replyTo(connection.requestExecute(OFFER_REQUEST));
    if (reply.content.status === "ok") {
      this.#settle(readAnswer(reply.content));
    } else if (reply.content.status === "error") {
      this.subshell.forget(); // the request itself cannot fail, so the kernel knows no such subshell
    }
  }

  #settle(answer: Answer): void {
    this.end();
    this.#take(answer);
  }
}

function readAnswer(reply: KernelMessage.IExecuteReply): Answer {
  const offered = reply.user_expressions["gpuviz"] as JSONObject | undefined;
  if (offered?.["status"] === "error") {
    const complaint = `${String(offered["ename"])}: ${String(offered["evalue"])}`;
    return { status: "unfit", complaint };
  }
  const text = (offered?.["data"] as JSONObject | undefined)?.["text/plain"];
  const isAbsent = text === undefined || text === "None";
  return { status: isAbsent ? "absent" : "present", complaint: "" };
}
