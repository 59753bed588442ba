"""The Jupyter server extension."""

from typing import TYPE_CHECKING

from gpuviz import __version__ as __version__

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp
    from tornado.web import Application

# Where the answer is, under the server's base URL; the page asks only where it is told of it.
PATH = "gpuviz/api/devices"
PAGE_OPTION = "gpuvizDevices"


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "gpuviz.server"}]


def _load_jupyter_server_extension(serverapp: "ServerApp") -> None:
    from jupyter_server.utils import url_path_join

    from gpuviz.recorder.device_totals import device_totals
    from gpuviz.server.devices import DevicesHandler
    from gpuviz.server.shared_reading import SharedReading

    application: Application = serverapp.web_app
    url = url_path_join(application.settings["base_url"], PATH)
    arguments = {"reading": SharedReading(device_totals)}
    application.add_handlers(".*$", [(url, DevicesHandler, arguments)])
    application.settings.setdefault("page_config_data", {})[PAGE_OPTION] = PATH
