"""Memory snapshots as PyTorch writes them."""

BASE = 0x7F00_0000_0000


def block(address, size, state="active_allocated", requested=None, **more):
    requested = size if requested is None else requested
    return {"address": address, "size": size, "requested_size": requested, "state": state} | more


def segment(blocks, **more):
    first = {"device": 0, "address": blocks[0]["address"], "stream": 0, "segment_type": "large"}
    size = sum(each["size"] for each in blocks)
    return first | {"total_size": size, "blocks": blocks, "is_expandable": False} | more


def event(action, address, size, **more):
    return {"action": action, "addr": address, "size": size, "stream": 0} | more


def whole(blocks, trace, **more):
    return {"segments": [segment(blocks)], "device_traces": [trace]} | more


def freed_block(size, requested):
    """Return the trace of a request in a new segment of 20 MiB, and of its free."""
    return [
        event("segment_alloc", BASE, size),
        event("alloc", BASE, requested),
        event("free_requested", BASE, requested),
        event("free_completed", BASE, requested),
    ]
