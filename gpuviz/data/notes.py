"""Notes on what a recording lacks, and on what it leaves out."""

import numpy as np

from gpuviz.data.columns import plain
from gpuviz.data.implied_columns import INSTALLED
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import Tables
from gpuviz.quantities import format_counted


def notes(manifest: Manifest) -> tuple[str, ...]:
    """Return sentences on the origin of a recording, and on what it lacks."""
    sentences = [manifest.label] if manifest.label else []
    if manifest.simulated and not manifest.label:
        sentences.append("Recorded on a simulated device.")
    if manifest.dropped:
        sentences.append(f"{manifest.dropped} events were dropped because buffers were full.")
    if manifest.dropped_oldest:
        sentences.append(f"The {manifest.dropped_oldest} oldest events were discarded.")
    if manifest.dropped_activities:
        sentences.append(
            f"{manifest.dropped_activities} rows of activities and calls were dropped."
        )
    if manifest.dropped_oldest_activities:
        oldest = manifest.dropped_oldest_activities
        sentences.append(f"The {oldest} oldest rows of activities and calls were discarded.")
    if not manifest.complete and not manifest.notes:
        sentences.append("The recording was not stopped properly; its end is missing.")
    return (*sentences, *manifest.notes)


def deep_stacks(tables: Tables) -> str:
    """Return a sentence on stacks whose middle frames were left out; empty if there are none.

    It is no warning: each of these stacks says how many frames it leaves out.
    """
    frames, stacks = tables["frames"], tables["stacks"]
    is_left_out = np.array([not name for name in frames["filename"].to_pylist()], bool)
    is_left_out &= (plain(frames["line"]) == 0) & (plain(frames["installed"]) == INSTALLED)
    if not is_left_out.any():
        return ""
    lists = stacks["frames"].combine_chunks()
    # `value_lengths` would import pyarrow.compute.
    lengths = np.diff(lists.offsets.to_numpy())
    is_inner = np.zeros(int(lengths.sum()), bool)
    is_inner[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
    found = np.isin(
        lists.flatten().to_numpy(zero_copy_only=False), plain(frames["id"])[is_left_out]
    )
    count = len(np.unique(np.repeat(np.arange(len(lengths)), lengths)[found & ~is_inner]))
    if not count:
        return ""
    counted = format_counted(count, "call stack was", "call stacks were")
    return (
        f"{counted} very deep: the innermost and outermost frames were kept, and those between "
        "them only counted."
    )
