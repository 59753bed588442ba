import { ABCWidgetFactory, DocumentWidget, type DocumentRegistry } from "@jupyterlab/docregistry";
import type { Contents, ServerConnection } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Widget } from "@lumino/widgets";

import { Scope } from "../base/scope.ts";
import { download } from "./download.ts";
import { gpuIcon } from "./icon.ts";
import { Waiting } from "./waiting.ts";

type Context = DocumentRegistry.Context;

/** A tab that shows a recording. */
export type RecordingDocument = DocumentWidget<RecordingPanel>;

interface Services {
  readonly contents: Contents.IManager;
  readonly server: ServerConnection.ISettings;
  readonly words: TranslationBundle;
}

export class RecordingDocumentFactory extends ABCWidgetFactory<RecordingDocument> {
  readonly #services: Services;

  constructor(options: DocumentRegistry.IWidgetFactoryOptions<RecordingDocument> & Services) {
    super(options);
    this.#services = options;
  }

  protected override createNewWidget(context: Context): RecordingDocument {
    const content = new RecordingPanel(context, this.#services);
    const document = new DocumentWidget({ content, context });
    document.title.icon = gpuIcon;
    return document;
  }
}

/** Streams a file into the page and shows its timeline; says what is wrong with one that it cannot read. */
export class RecordingPanel extends Widget {
  readonly #context: Context;
  readonly #services: Services;
  readonly #stop = new AbortController();
  #shown = new Scope();

  constructor(context: Context, services: Services) {
    super();
    this.#context = context;
    this.#services = services;
    this.addClass("gpuviz-recording");
    this.node.tabIndex = -1;
    void context.ready.then(() => this.#show());
  }

  override dispose(): void {
    this.#stop.abort();
    this.#shown.dispose();
    super.dispose();
  }

  async #show(): Promise<void> {
    const { contents, server, words } = this.#services;
    const waiting = new Waiting(this.node, words);
    try {
      const [{ showRecording }, url] = await Promise.all([
        import("./recording_view.ts"),
        contents.getDownloadUrl(this.#context.path),
      ]);
      const bytes = await download(url, server, this.#stop.signal, (done, total) => {
        waiting.progress(done, total);
      });
      const shown = await showRecording(this.node, bytes);
      waiting.end();
      this.#shown = shown;
    } catch (error) {
      if (!this.isDisposed) {
        waiting.fail(this.#context.localPath, error);
      }
    }
    if (this.isDisposed) {
      this.#shown.dispose();
    }
  }
}
