"""The part of a recording that stands for all of it, if streams were recorded in windows."""

from gpuviz.analysis.unseen import extent, is_whole, parts
from gpuviz.analysis.window import window
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData


@Once
def seen_part(recording: RecordingData) -> RecordingData:
    """Return the longest part in which streams were recorded; the recording itself if in all of it.

    What follows from the order of launches, such as iterations, and what a change would save, is
    known of such a part only: what happened between two parts is not.
    """
    if is_whole(recording.tables):
        return recording
    times = recording.bounds or extent(recording.tables)
    longest = max(
        ((part.begin, part.end) for part in parts(recording.tables, times)),
        key=lambda span: span[1] - span[0],
        default=(0, 0),
    )
    return window(recording, *longest)
