"""Uses of blocks that need what is in them."""

import numpy as np

from gpuviz.analysis.touches import Touches, without_touches
from gpuviz.data.columns import codes
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_WRITE = DICTIONARIES["launch_blocks", "mode"].index("write")


def needed_touches(recording: RecordingData, used: Touches) -> Touches:
    """Return the uses of blocks without those that only fill them.

    A copy from the host and a memset can be made later as well. If only copies and memsets write a
    block, and nothing reads it, none of them is needed.
    """
    activities = recording.tables["activities"]
    seen, rows = used.activity >= 0, np.maximum(used.activity, 0)
    kind = codes(activities["kind"], _KINDS)[rows]
    copy_kind = codes(activities["copy_kind"], _COPY_KINDS)[rows]
    is_memset = seen & (kind == _KINDS.index("memset"))
    is_copy = seen & (kind == _KINDS.index("memcpy")) & (used.mode == _WRITE)
    only_filled = np.ones(len(used.blocks), bool)
    only_filled[used.block[~is_memset & ~is_copy]] = False
    from_host = copy_kind == _COPY_KINDS.index("host_to_device")
    fills = is_memset | (is_copy & (from_host | only_filled[used.block]))
    return without_touches(recording, used, fills)
