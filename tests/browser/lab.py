"""A real JupyterLab or Notebook 7 with notebooks, for tests."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Page,
    Response,
    ViewportSize,
)
from playwright.sync_api import (
    TimeoutError as PlaywrightTimeoutError,
)

from tests.patience import PATIENCE_S, T, address_of, wait_until

# Settings unrelated to the widget: no requests for news, and no questions on closing a tab.
PAGE_CONFIG = {
    "disabledExtensions": {
        "@jupyterlab/apputils-extension:announcements": True,
        "@jupyterlab/extensionmanager-extension": True,
    }
}

WINDOW: ViewportSize = {"width": 1400, "height": 900}
# A palette that is open takes text at once; a busy machine may take longer.
OPENS_MS = 10_000
# Longer than most kernels take to start.
SAYS_SO_MS = 10_000
# What a page shows, and what has its focus, for the message of a test that waits in vain.
SHOWN = """() => {
  const { shell } = window.jupyterapp;
  return JSON.stringify({
    current: shell.currentWidget?.title.label,
    kernels: [...shell.widgets("main")].map((each) => each.sessionContext?.session?.kernel?.status),
    hasFocus: document.hasFocus(),
    focused: document.activeElement?.className,
    dialogs: [...document.querySelectorAll(".jp-Dialog")].map((each) => each.innerText),
  });
}"""


@dataclass(frozen=True, slots=True)
class Application:
    """An application for notebooks: the module that starts it, and its URL of a notebook.

    Attributes:
        python: The interpreter of the server.
        kernel: The interpreter of kernels; by default that of the tests.
    """

    module: str
    config: str
    page: str
    python: str = sys.executable
    kernel: str = sys.executable


LAB = Application("jupyterlab", "LabApp", "lab/tree")
NOTEBOOK = Application("notebook", "JupyterNotebookApp", "notebooks")


@contextmanager
def running_lab(
    folder: Path,
    theme: str = "JupyterLab Light",
    application: Application = LAB,
    more_options: Sequence[str] = (),
    base: str = "",
) -> Iterator[str]:
    """Yield the URL of a JupyterLab, or another application, that serves a folder.

    It ends with the base path, if there is one, such as ``/user/ada``.
    """
    home = folder / ".home"
    environment = os.environ | furnished(home, theme, application.kernel)
    with (home / "log").open("w") as log:
        command = [application.python, "-m", application.module, "--no-browser", "--allow-root"]
        options = ["--port=0", "--IdentityProvider.token=", f"--notebook-dir={folder}"]
        options.append(f"--ServerApp.base_url={base}/")
        options.append("--KernelSpecManager.ensure_native_kernel=False")
        options.append(f"--{application.config}.expose_app_in_browser=True")
        server = subprocess.Popen(
            [*command, *options, *more_options], env=environment, cwd=folder, stdout=log, stderr=log
        )
        try:
            yield address_of(server, home / "runtime", home / "log") + base
        finally:
            # Kernels end when their server is killed; a regular shutdown would wait for busy ones.
            server.kill()
            server.wait()


def furnished(home: Path, theme: str, kernel: str) -> dict[str, str]:
    """Create a user's home folder, and return the environment variables that refer to it."""
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    config = home / "config" / "labconfig"
    for needed in (settings, config):
        needed.mkdir(parents=True, exist_ok=True)
    (settings / "themes.jupyterlab-settings").write_text(json.dumps({"theme": theme}))
    (config / "page_config.json").write_text(json.dumps(PAGE_CONFIG))
    add_kernel(home / "data", "python3", "-m", "ipykernel_launcher", python=kernel)
    return {
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_PATH": str(home / "data"),
    }


def add_kernel(data: Path, name: str, *program: str, python: str = sys.executable) -> None:
    """Make kernels of this name run a program in this interpreter."""
    folder = data / "kernels" / name
    folder.mkdir(parents=True, exist_ok=True)
    command = [python, *program, "-f", "{connection_file}"]
    kernel = {"argv": command, "display_name": f"{name} (ipykernel)", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(kernel))


def write_notebook(folder: Path, name: str, cells: list[str], kernel: str = "python3") -> None:
    def cell(number: int, source: str) -> dict[str, object]:
        return {
            "cell_type": "code",
            "id": f"cell-{number}",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": source,
        }

    kernelspec = {"name": kernel, "display_name": kernel, "language": "python"}
    notebook = {
        "cells": [cell(number, source) for number, source in enumerate(cells)],
        "metadata": {"kernelspec": kernelspec},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (folder / name).write_text(json.dumps(notebook))


def open_notebook(page: Page, url: str, name: str, application: Application = LAB) -> None:
    page.goto(f"{url}/{application.page}/{name}?reset")
    wait_until_restored(page)
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    wait_until_idle(page)


def open_lab(page: Page, url: str) -> None:
    """Load JupyterLab without a notebook."""
    page.goto(f"{url}/lab?reset")
    wait_until_restored(page)


def open_in_lab(page: Page, name: str) -> None:
    """Open a notebook in a page that has loaded JupyterLab."""
    page.evaluate(
        "path => window.jupyterapp.commands.execute('docmanager:open', { path }).then(() => {})",
        name,
    )
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    wait_until_idle(page)


def wait_until_restored(page: Page) -> None:
    """Wait until the application shows its last layout, in place of what was opened before."""
    page.wait_for_function("window.jupyterapp?.restored.then(() => true)")


def wait_until_idle(page: Page) -> None:
    """Wait until the kernel of the notebook has started and is idle.

    JupyterLab knows the current notebook by the focus, which a notebook asks for once; one that did
    not get it is clicked on, as a person would.

    Raises:
        TimeoutError: It is not; the message says what the page shows.
    """
    kernel = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel"

    def is_idle() -> bool:
        try:
            page.wait_for_function(f"{kernel}?.status === 'idle'", timeout=SAYS_SO_MS)
        except PlaywrightTimeoutError:
            take_focus(page)
            return False
        return True

    try:
        until(page, is_idle)
    except TimeoutError as error:
        raise TimeoutError(f"no kernel is idle: {page.evaluate(SHOWN)}") from error


def take_focus(page: Page) -> None:
    """Give the focus to the notebook that did not get it, unless something else is before it."""
    if page.evaluate("!window.jupyterapp.shell.currentWidget"):
        page.bring_to_front()
        with suppress(PlaywrightTimeoutError):
            page.locator(".jp-Notebook .jp-InputPrompt").first.click(timeout=OPENS_MS)


def run_all(page: Page) -> None:
    """Run all cells with the menu command, and wait for the last one."""
    command(page, "notebook:run-all-cells")
    cells = "window.jupyterapp.shell.currentWidget.content.model.cells"
    ran = f"[...{cells}].every(cell => cell.type !== 'code' || cell.executionCount !== null)"
    page.wait_for_function(ran)
    wait_until_idle(page)


def save(page: Page) -> None:
    """Save the notebook, and wait until it is saved."""
    command(page, "docmanager:save")
    page.wait_for_function("!window.jupyterapp.shell.currentWidget.context.model.dirty")


def palette(page: Page, label: str) -> None:
    """Choose a command by its label in the palette.

    The palette closes if a notebook that was activated before gets the focus only now.
    """
    dialog = page.locator("#modal-command-palette")
    item = dialog.locator(".lm-CommandPalette-item", has_text=label).first

    def is_chosen() -> bool:
        page.keyboard.press("Control+Shift+C")
        try:
            dialog.locator("input").fill(label, timeout=OPENS_MS)
            item.click(timeout=OPENS_MS)
        except PlaywrightTimeoutError:
            return False
        return True

    until(page, is_chosen)


def gpu_panel(page: Page) -> Locator:
    """Open the side panel, and return the card of the first kernel."""
    wait_until_restored(page)
    page.locator(".jp-SideBar [data-id='gpuviz-panel']").click()
    return page.locator("#gpuviz-panel .gpuviz-card").first


def card_of(page: Page, name: str) -> Locator:
    """Open the side panel, and return the card of a notebook's kernel."""
    gpu_panel(page)
    return page.locator("#gpuviz-panel .gpuviz-card").filter(has_text=name)


def kernels_of(page: Page, lab: str) -> list[str]:
    """Return the ids of the running kernels."""
    return [kernel["id"] for kernel in page.request.get(f"{lab}/api/kernels").json()]


def listed_file(page: Page, name: str) -> Locator:
    """Return a file of the file browser; `name` may be the beginning of its name."""
    return page.locator(f".jp-DirListing-item[title^='Name: {name}']")


def command(page: Page, name: str) -> None:
    """Start a command of the application, like its menus and palette."""
    page.evaluate("name => void window.jupyterapp.commands.execute(name)", name)


def leave(page: Page) -> None:
    """Disconnect a page from its server before the server ends, which would cause errors."""
    page.goto("about:blank")


# anywidget gives a model two seconds, which a page that shares a busy machine may exceed.
# The tests themselves assert that the widgets are there.
SLOW_START = "[anywidget] Failed to initialize model."
# JupyterLab asks for the widgets of a kernel over a comm, which a kernel without widgets closes;
# other pages do not know it, nor does this one if it was reloaded.
FOREIGN_COMM = "Comm not found"
# Notebook 7.6 itself lacks a settings schema at startup, with any notebook.
LACKS_SCHEMA = "Cannot read properties of undefined (reading 'schema')"


@contextmanager
def watched_page(
    browser: Browser,
    height: int = WINDOW["height"],
    *,
    is_ours: Callable[[str], bool] = bool,
    at_end: Callable[[Page], object] = lambda _: None,
) -> Iterator[Page]:
    """Yield a page; an error in the browser's console that is ours fails the test.

    What `at_end` does may cause errors.
    """
    with patient_page(browser, height) as page:
        complaints = note_complaints(page)
        yield page
        seen = list(complaints)
        at_end(page)
    ours = list(filter(is_ours, seen))
    assert ours == [], ours


@contextmanager
def patient_page(browser: Browser, height: int = WINDOW["height"]) -> Iterator[Page]:
    """Yield a page that waits as long as a busy machine may take."""
    context = browser.new_context(viewport=WINDOW | {"height": height})
    context.set_default_timeout(1000 * PATIENCE_S)
    yield context.new_page()
    context.close()


def is_error(message: ConsoleMessage) -> bool:
    """Return whether a message in the browser's console is an error of a page."""
    return message.type == "error" and "/api/" not in message.location.get("url", "")


def note_complaints(page: Page, is_ours: Callable[[ConsoleMessage], bool] = is_error) -> list[str]:
    """Return a list to which errors in the browser's console are added."""
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if is_ours(message):
            complain(message.text)

    def complain(text: str) -> None:
        is_known = SLOW_START in text or text == LACKS_SCHEMA or text.startswith(FOREIGN_COMM)
        if not is_known:
            complaints.append(text)

    page.on("console", note)
    page.on("pageerror", lambda error: complain(str(error)))
    return complaints


# Disposed of, a notebook does not ask whether to save it. A toast's element has its message's id.
CLOSE_ALL = """async () => {
  const { commands, shell } = window.jupyterapp;
  [...shell.widgets("main")].forEach((each) => each.dispose());
  for (const { id } of document.querySelectorAll(".Toastify__toast")) {
    await commands.execute("apputils:dismiss-notification", { id });
  }
  shell.activateById("filebrowser");
}"""


# The server cannot end a kernel that it is just restarting.
END_KERNELS = """() => window.jupyterapp.serviceManager.sessions.shutdownAll().then(
  () => true, () => false)"""


class LoadedLab:
    """A page of JupyterLab for one test after the other: to load it takes seconds of CPU time.

    `is_ours` tells whether a message in the browser's console fails a test, and `prepare` is called
    with a page before it loads JupyterLab.
    """

    def __init__(
        self,
        browser: Browser,
        url: str,
        *,
        is_ours: Callable[[ConsoleMessage], bool] = is_error,
        prepare: Callable[[Page], object] = lambda _: None,
    ) -> None:
        self._browser = browser
        self._url = url
        self._is_ours = is_ours
        self._prepare = prepare
        self._opened = ExitStack()
        self._page: Page | None = None
        self._complaints: list[str] = []

    def page(self) -> Page:
        """Return the page, on which nothing is open."""
        if self._page is None:
            self._page = self._opened.enter_context(patient_page(self._browser))
            self._complaints = note_complaints(self._page, self._is_ours)
            self._prepare(self._page)
            open_lab(self._page, self._url)
        self._page.set_viewport_size(WINDOW)
        return self._page

    def clear(self) -> None:
        """Close all that a test opened, and end its kernels.

        Raises:
            AssertionError: There were errors in the browser's console.
        """
        complaints = self._complaints.copy()
        page = self.page()
        page.evaluate(CLOSE_ALL)
        until(page, lambda: page.evaluate(END_KERNELS))
        page.locator(".gpuviz-card, .Toastify__toast").first.wait_for(state="detached")
        self._complaints.clear()
        assert complaints == [], complaints

    def discard(self) -> None:
        """Close the page, so that the next test gets a new one."""
        if self._page is not None:
            leave(self._page)
            self._opened.close()
            self._page = None


def until(page: Page, read: Callable[[], T]) -> T:
    """Return the first true result of a function, while what the page does is noticed."""
    return wait_until(read, pause=lambda seconds: page.wait_for_timeout(1000 * seconds))


def saved_on_server(page: Page, path: str, *texts: str) -> AbstractContextManager[object]:
    """Return a context that ends when the page has saved these texts at a path of its server."""

    def is_sent(response: Response) -> bool:
        request = response.request
        sent = request.post_data or ""
        is_whole = all(text in sent for text in texts)
        return request.method == "PUT" and path in request.url and is_whole and response.ok

    return page.expect_response(is_sent)


def run_cell(page: Page, number: int) -> None:
    """Run a cell, counted from 0, without waiting for its end."""
    before = prompt(page, number)
    begin_cell(page, number)
    until(page, lambda: prompt(page, number) != before)


def begin_cell(page: Page, number: int) -> None:
    """Run a cell that may end its kernel, which takes its prompt back at once."""
    page.locator(".jp-CodeCell .cm-content").nth(number).click()
    page.keyboard.press("Control+Enter")


def run(page: Page, number: int) -> None:
    """Run a cell, and wait for its end."""
    run_cell(page, number)
    wait_until_run(page, number)


def holding(pipe: Path) -> str:
    """Return a program that holds the GIL in a long call, until the test writes to a pipe."""
    return f"""
import ctypes, pathlib
pathlib.Path({str(pipe.with_suffix(".begun"))!r}).touch()
ctypes.PyDLL(None).open({os.fsencode(pipe)!r}, 0)
"""


def prompt(page: Page, number: int) -> str:
    """Return the prompt of a cell: its count, or ``[*]:`` while it runs."""
    # Not the inner text, which is empty if the cell is scrolled out of view.
    return (page.locator(".jp-CodeCell .jp-InputPrompt").nth(number).text_content() or "").strip()


def wait_until_run(page: Page, number: int) -> None:
    until(page, lambda: re.fullmatch(r"\[\d+\]:", prompt(page, number)))
