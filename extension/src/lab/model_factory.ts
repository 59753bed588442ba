import { TextModelFactory } from "@jupyterlab/docregistry";
import type { Contents } from "@jupyterlab/services";

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
