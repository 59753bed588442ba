"""The list of recorded workers in a notebook, which follows their memory."""

import asyncio
import time
from typing import TYPE_CHECKING, Any

from gpuviz.dask.memory_reports import MEMORY_TOPIC
from gpuviz.dask.plugin import TOPIC

if TYPE_CHECKING:
    from distributed import Client

    from gpuviz.dask.worker_list import WorkerList

_INTERVAL_S = 1.0
_TOPICS = (TOPIC, MEMORY_TOPIC)


class WorkerDisplay:
    """An output that shows a list of workers, refreshed at most once a second.

    Args:
        client: The client of the cluster, through which the workers' events arrive.
        workers: The list, which takes the events.
    """

    def __init__(self, client: "Client", workers: "WorkerList") -> None:
        from gpuviz.notebook.live_output import LiveOutput

        self._client, self._workers = client, workers
        self._output = LiveOutput(workers.html, workers.text)
        self._is_due = False
        self._latest = 0.0
        self._is_following = False

    def follow(self) -> None:
        """Take the events so far, and refresh when there is another."""
        if self._is_following:
            return
        self._is_following = True
        for topic in _TOPICS:
            self._client.subscribe_topic(topic, self._take)
        # The memory of a worker follows its start.
        for topic in _TOPICS:
            for _, event in self._client.get_events(topic):
                self._workers.take(event)

    def show(self) -> None:
        """Show the list as the output of a cell."""
        self._output.show()

    def end(self) -> None:
        """Show the list for the last time, and stop following events."""
        if self._is_following and self._client.status == "running":
            for topic in _TOPICS:
                self._client.unsubscribe_topic(topic)
        self._is_following = False
        self._output.update()

    async def _take(self, event: tuple[float, dict[str, Any]]) -> None:
        """Take an event, on the client's event loop."""
        self._workers.take(event[1])
        if not self._is_due:
            self._is_due = True
            wait = max(0.0, self._latest + _INTERVAL_S - time.monotonic())
            asyncio.get_running_loop().call_later(wait, self._refresh)

    def _refresh(self) -> None:
        self._is_due, self._latest = False, time.monotonic()
        self._output.update()
