import {
  ABCWidgetFactory,
  DocumentWidget,
  type DocumentRegistry,
  TextModelFactory,
} from "@jupyterlab/docregistry";
import { type Contents, ServerConnection } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Widget } from "@lumino/widgets";

import { Scope } from "../base/scope.ts";
import type { ByteSource } from "../wire/byte_source.ts";
import { RecordingFile } from "../wire/recording_file.ts";
import { type Converted, convertedUrl } from "./conversion.ts";
import { gpuIcon } from "./icon.ts";
import { openRemote } from "./remote_file.ts";
import type { Settings } from "./settings.ts";
import { Waiting } from "./waiting.ts";

/** A tab that shows a recording. */
export type RecordingDocument = DocumentWidget<RecordingPanel>;

interface Services {
  readonly contents: Contents.IManager;
  readonly server: ServerConnection.ISettings;
  readonly settings: Settings;
  readonly words: TranslationBundle;
}

/** A document whose content JupyterLab does not fetch, because the view streams the file itself. */
export class UnfetchedModelFactory extends TextModelFactory {
  override get name(): string {
    return "gpuviz-unfetched";
  }

  override get contentType(): Contents.ContentType {
    return "file";
  }

  override get fileFormat(): Contents.FileFormat {
    return null;
  }
}

export class RecordingDocumentFactory extends ABCWidgetFactory<RecordingDocument> {
  readonly #services: Services;

  constructor(options: DocumentRegistry.IWidgetFactoryOptions<RecordingDocument> & Services) {
    super(options);
    this.#services = options;
  }

  protected override createNewWidget(context: DocumentRegistry.Context): RecordingDocument {
    const content = new RecordingPanel(context, this.#services);
    const document = new DocumentWidget({ content, context });
    document.title.icon = gpuIcon;
    return document;
  }
}

/** Streams a file into the page and shows its timeline, or the reason why it cannot be read. */
class RecordingPanel extends Widget {
  readonly #context: DocumentRegistry.Context;
  readonly #services: Services;
  readonly #stop = new AbortController();
  readonly #shown = new Scope();

  constructor(context: DocumentRegistry.Context, services: Services) {
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
    const { contents, server, settings, words } = this.#services;
    const waiting = new Waiting(this.node, words);
    try {
      const [{ RecordingView }, url] = await Promise.all([
        import("./recording_view.ts"),
        contents.getDownloadUrl(this.#context.path),
      ]);
      const { signal } = this.#stop;
      const news = waiting.downloading.bind(waiting);
      const source = await openRemote(url, server, signal, news);
      const made = (to: Converted): Promise<string> =>
        convertedUrl(to, [url], server, signal, words);
      const convert = async (): Promise<ByteSource> => {
        waiting.converting();
        return openRemote(await made("recording"), server, signal, news);
      };
      if (this.isDisposed) {
        return;
      }
      const view = new RecordingView(this.node, words, settings.colourBy());
      this.#shown.use(view.scope);
      await view.read(source, convert, waiting.reading.bind(waiting));
      waiting.end();
      const findings = async (): Promise<RecordingFile> => {
        const url = await made("findings");
        return RecordingFile.open(await openRemote(url, server, signal, () => undefined));
      };
      // Nothing of a file that is not on this server.
      await view.readConclusions(findings()).catch(() => undefined);
    } catch (error) {
      this.#shown.dispose();
      if (!this.isDisposed) {
        waiting.fail(this.#context.localPath, error);
      }
    }
  }
}
