import { ABCWidgetFactory, DocumentWidget, type DocumentRegistry } from "@jupyterlab/docregistry";
import type { Contents, ServerConnection } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Widget } from "@lumino/widgets";

import { Scope } from "../base/scope.ts";
import type { ByteSource } from "../wire/byte_source.ts";
import { convertedUrl } from "./conversion.ts";
import { gpuIcon } from "./icon.ts";
import { openRemote } from "./remote_file.ts";
import type { Settings } from "./settings.ts";
import { Waiting } from "./waiting.ts";

type Context = DocumentRegistry.Context;

/** A tab that shows a recording. */
export type RecordingDocument = DocumentWidget<RecordingPanel>;

interface Services {
  readonly contents: Contents.IManager;
  readonly server: ServerConnection.ISettings;
  readonly settings: Settings;
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

/** Streams a file into the page and shows its timeline, or the reason why it cannot be read. */
export class RecordingPanel extends Widget {
  readonly #context: Context;
  readonly #services: Services;
  readonly #stop = new AbortController();
  readonly #shown = new Scope();

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
      const [{ RecordingView }, url] = await Promise.all([
        import("./recording_view.ts"),
        contents.getDownloadUrl(this.#context.path),
      ]);
      const { signal } = this.#stop;
      const news = waiting.downloading.bind(waiting);
      const source = await openRemote(url, server, signal, news);
      const convert = async (): Promise<ByteSource> => {
        waiting.converting();
        return openRemote(await convertedUrl(url, server, signal, words), server, signal, news);
      };
      if (this.isDisposed) {
        return;
      }
      const view = new RecordingView(this.node, words, this.#services.settings.colourBy());
      this.#shown.use(view.scope);
      await view.read(source, convert, (share) => waiting.reading(share));
      waiting.end();
    } catch (error) {
      this.#shown.dispose();
      if (!this.isDisposed) {
        waiting.fail(this.#context.localPath, error);
      }
    }
  }
}
