import type { Notebook } from "@jupyterlab/notebook";
import type { ISessionContext } from "@jupyterlab/apputils";
import { CodeCell } from "@jupyterlab/cells";
import { OutputArea } from "@jupyterlab/outputarea";

/** Runs the active cell of a notebook with `%%gpuviz`, without changing its text. */
export async function profileCell(notebook: Notebook, session: ISessionContext): Promise<void> {
  const cell = notebook.activeCell;
  if (!(cell instanceof CodeCell)) {
    return;
  }
  const source = cell.model.sharedModel.getSource();
  const isProfiled = /^\s*%%gpuviz\b/.test(source);
  const code = isProfiled ? source : `%%gpuviz\n${source}`;
  cell.model.executionCount = null;
  cell.setPrompt("*");
  cell.outputHidden = false;
  try {
    const metadata = { cellId: cell.model.sharedModel.getId() };
    const reply = await OutputArea.execute(code, cell.outputArea, session, metadata);
    cell.model.executionCount = reply?.content.execution_count ?? null;
  } finally {
    if (!cell.isDisposed) {
      cell.setPrompt(String(cell.model.executionCount ?? ""));
    }
  }
}
