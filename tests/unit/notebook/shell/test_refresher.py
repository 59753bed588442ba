"""Regular calls of a function for an object, until it is gone."""

from gpuviz.notebook.refresher import Refresher
from tests.unit.notebook.shell.dashboards import wait_for


class Counter:
    """Counts its refreshes."""

    def __init__(self, *, again=True):
        self.calls = 0
        self.again = again

    def refresh(self):
        self.calls += 1
        return self.again


def test_refreshing_ends_with_the_object_and_when_told():
    counter, done = Counter(), Counter(again=False)
    kept, ended = (Refresher(each.refresh, interval_s=0.01) for each in (counter, done))
    kept.start()
    ended.start()
    del counter

    assert wait_for(lambda: not kept.is_running)
    assert wait_for(lambda: not ended.is_running)
    assert done.calls == 1


def test_a_refresher_that_is_woken_calls_at_once():
    counter = Counter()
    refresher = Refresher(counter.refresh, interval_s=600)
    refresher.start()
    refresher.wake()

    assert wait_for(lambda: counter.calls == 1)
    refresher.stop()
    assert not refresher.is_running
