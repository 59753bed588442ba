import { Scope } from "../base/scope.ts";
import type { Message } from "../wire/batches.ts";
import { Follower } from "./follower.ts";

/** The part of anywidget's model that is used here. */
export interface WidgetModel {
  get(name: string): unknown;
  send(content: unknown): void;
  on(event: "msg:custom", handler: (content: Message, buffers: DataView[]) => void): void;
  on(event: string, handler: () => void): void;
  off(event: string, handler: (...values: never[]) => void): void;
}

/** A tab that is hidden for less than this is not told to the kernel. */
const HIDDEN_MS = 10_000;

/** The link of one widget to its kernel: follows while somebody may look at it. */
export class Session {
  readonly follower: Follower;
  readonly scope = new Scope();
  readonly #viewer = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  readonly #model: WidgetModel;
  #views = 0;
  #isShown = false;
  #isCut = false;
  #hiding: number | undefined;

  constructor(model: WidgetModel) {
    this.#model = model;
    this.follower = new Follower(
      (since) => this.#send({ kind: "show", since }),
      () => performance.now(),
    );
    this.#listen();
    this.scope.defer(() => this.#hide());
  }

  /** Whether the kernel is gone, as far as is known. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** Follows until the returned function is called for every view. */
  addView(): () => void {
    this.#views += 1;
    this.#showOrHide();
    return () => {
      this.#views -= 1;
      this.#showOrHide();
    };
  }

  #listen(): void {
    const receive = (message: Message, buffers: DataView[]): void => {
      if (message.kind === "batches") {
        this.#isCut = false;
        this.follower.receive(message, buffers);
      } else if (message.kind === "at") {
        this.follower.notice(message.number);
      } else if (message.kind === "other") {
        this.follower.begin();
        this.#isShown = false;
        this.#showOrHide();
      } else if (message.kind === "nothing") {
        this.follower.waitForAny();
      }
    };
    const cut = (): void => {
      this.#isCut = true;
      this.follower.revision.value += 1;
    };
    const end = new AbortController();
    const { signal } = end;
    this.#model.on("msg:custom", receive);
    this.#model.on("comm_live_update", cut);
    document.addEventListener("visibilitychange", () => this.#showOrHide(), { signal });
    window.addEventListener("pagehide", () => this.#hide(), { signal });
    this.scope.defer(() => {
      this.#model.off("msg:custom", receive);
      this.#model.off("comm_live_update", cut);
      end.abort();
    });
  }

  #showOrHide(): void {
    clearTimeout(this.#hiding);
    this.#hiding = undefined;
    if (this.#views === 0) {
      this.#hide();
    } else if (document.hidden) {
      this.#hiding = window.setTimeout(() => this.#hide(), HIDDEN_MS);
    } else if (!this.#isShown) {
      this.#isShown = true;
      this.follower.catchUp();
    }
  }

  #hide(): void {
    if (this.#isShown) {
      this.#isShown = false;
      this.#send({ kind: "hide" });
    }
  }

  #send(content: Readonly<Record<string, unknown>>): void {
    if (!this.#isCut) {
      this.#model.send({ ...content, viewer: this.#viewer });
    }
  }
}
