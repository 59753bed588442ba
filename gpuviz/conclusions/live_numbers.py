"""Which numbers gpuviz shows of a recording in progress, and of one that has just ended."""

from gpuviz.conclusions import numbers
from gpuviz.conclusions.headline_number import Number
from gpuviz.conclusions.recording_numbers import time_figures
from gpuviz.data.recording_data import RecordingData
from gpuviz.recorder.status import DeviceStatistics, RecorderStatistics


def live_headline(
    statistics: RecorderStatistics,
    device: DeviceStatistics | None = None,
    finished: RecordingData | None = None,
) -> list[Number]:
    """Return the headline numbers of a recorder, formatted, the elapsed time first.

    Args:
        statistics: The statistics of the recorder.
        device: One of its devices; the first if None.
        finished: The recording at its end: times are then those of its report, of the steady state
            and without what recording cost.
    """
    device = device or next(iter(statistics.devices), None)
    times: list[Number] = []
    if finished is not None and device is not None:
        times = list(time_figures(finished, device.device))
    return [
        numbers.recorded(statistics),
        *(() if device is None else numbers.live_memory(device)),
        *(times or numbers.live_work(statistics, device)),
        numbers.dropped_events(statistics),
        *(() if times else (numbers.overhead(statistics),)),
    ]
