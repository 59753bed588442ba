import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin,
} from "@jupyterlab/application";
import { WidgetTracker } from "@jupyterlab/apputils";
import { ITranslator, nullTranslator } from "@jupyterlab/translation";

import { gpuIcon } from "./icon.ts";
import { ISettings, type Settings } from "./settings.ts";
import {
  type RecordingDocument,
  RecordingDocumentFactory,
  UnfetchedModelFactory,
} from "./recording_document.ts";

/** The name of the widget factory, which JupyterLab stores in workspaces. */
export const FACTORY = "GPU timeline";
const RECORDING = "gpuviz-recording";
const TORCH_SNAPSHOT = "torch-memory-snapshot";

/** Opens recordings with a double click, and reports and torch snapshots through "Open With". */
export const recordings: JupyterFrontEndPlugin<void> = {
  id: "gpuviz:recordings",
  description: "Shows recordings of GPU memory and streams on one time axis.",
  autoStart: true,
  requires: [ISettings],
  optional: [ILayoutRestorer, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    settings: Settings,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
  ): void => {
    const words = (translator ?? nullTranslator).load("gpuviz");
    const { docRegistry } = app;
    docRegistry.addFileType({
      name: RECORDING,
      displayName: words.__("GPU Recording"),
      extensions: [".gpuviz"],
      mimeTypes: ["application/vnd.gpuviz"],
      contentType: "file",
      fileFormat: "base64",
      icon: gpuIcon,
    });
    docRegistry.addFileType({
      name: TORCH_SNAPSHOT,
      displayName: words.__("PyTorch Memory Snapshot"),
      extensions: [".pickle", ".pkl"],
      mimeTypes: ["application/octet-stream"],
      contentType: "file",
      fileFormat: "base64",
    });
    docRegistry.addModelFactory(new UnfetchedModelFactory());

    const factory = new RecordingDocumentFactory({
      name: FACTORY,
      label: words.__("GPU Timeline"),
      modelName: "gpuviz-unfetched",
      fileTypes: [RECORDING, TORCH_SNAPSHOT, "html"],
      defaultFor: [RECORDING],
      readOnly: true,
      contents: app.serviceManager.contents,
      server: app.serviceManager.serverSettings,
      settings,
      words,
    });
    docRegistry.addWidgetFactory(factory);
    keepOpen(factory, restorer);
  },
};

/** Restores open recordings after a reload of the page. */
function keepOpen(factory: RecordingDocumentFactory, restorer: ILayoutRestorer | null): void {
  const tracker = new WidgetTracker<RecordingDocument>({ namespace: "gpuviz-recordings" });
  factory.widgetCreated.connect((_, document) => {
    void tracker.add(document);
    document.context.pathChanged.connect(() => void tracker.save(document));
  });
  void restorer?.restore(tracker, {
    command: "docmanager:open",
    args: ({ context }) => ({ path: context.path, factory: FACTORY }),
    name: ({ context }) => context.path,
  });
}
