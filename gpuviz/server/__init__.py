"""The Jupyter server extension: GPUs, and what it makes of recordings, for JupyterLab."""

from typing import TYPE_CHECKING, Any

from gpuviz import __version__ as __version__

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp
    from tornado.web import Application, RequestHandler

# URL of the handlers, under the server's base URL. The page config tells a page that the server has
# gpuviz, so that it sends no requests to other servers.
PATH = "gpuviz/api/devices"
PAGE_OPTION = "gpuvizDevices"
RECORDINGS_PATH = "gpuviz/api/recordings"
RECORDINGS_PAGE_OPTION = "gpuvizRecordings"
FINDINGS_PATH = "gpuviz/api/findings"
FINDINGS_PAGE_OPTION = "gpuvizFindings"
COMPARISONS_PATH = "gpuviz/api/comparisons"
COMPARISONS_PAGE_OPTION = "gpuvizComparisons"


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "gpuviz.server"}]


def _load_jupyter_server_extension(serverapp: "ServerApp") -> None:
    from jupyter_server.utils import url_path_join

    from gpuviz.recorder.nvml import device_totals
    from gpuviz.server.conversions import Conversions
    from gpuviz.server.devices import DevicesHandler
    from gpuviz.server.recordings import ConvertedHandler, RecordingsHandler
    from gpuviz.server.shared_reading import SharedReading

    application: Application = serverapp.web_app
    base = application.settings["base_url"]
    reading = {"reading": SharedReading(device_totals)}
    results = {
        RECORDINGS_PATH: Conversions("recording.gpuviz"),
        FINDINGS_PATH: Conversions("findings.zip"),
        COMPARISONS_PATH: Conversions("comparison.html", sources=2),
    }
    handlers: list[tuple[str, type[RequestHandler], dict[str, Any]]] = [
        (url_path_join(base, PATH), DevicesHandler, reading)
    ]
    for path, conversions in results.items():
        made = {"conversions": conversions}
        converted = url_path_join(base, path, f"({conversions.names})")
        handlers.append((url_path_join(base, path), RecordingsHandler, made))
        handlers.append((converted, ConvertedHandler, made))
    application.add_handlers(".*$", list(handlers))
    page = application.settings.setdefault("page_config_data", {})
    page |= {
        PAGE_OPTION: PATH,
        RECORDINGS_PAGE_OPTION: RECORDINGS_PATH,
        FINDINGS_PAGE_OPTION: FINDINGS_PATH,
        COMPARISONS_PAGE_OPTION: COMPARISONS_PATH,
    }
