import { TextModelFactory } from "@jupyterlab/docregistry";
import type { Contents } from "@jupyterlab/services";

/** A document whose content JupyterLab does not fetch: the view streams the file by itself. */
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
