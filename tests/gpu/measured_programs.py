"""CuPy programs, each with what follows a finding's advice, or with nothing to follow."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import cupy as cp

from tests.gpu import array_programs
from tests.gpu.fused_programs import (
    accumulated,
    accumulated_by_one_kernel,
    scaled_in_place,
    summed_by_one_kernel,
    summed_over_arrays,
    summed_over_frequencies,
    updated_by_one_kernel,
    updated_on_one_line,
)
from tests.gpu.held_array_programs import (
    cache_kept,
    cache_released_in_each_step,
    history_of_arrays,
    history_of_means,
    many_parts,
    many_slices,
    means_of_paths,
    new_array_for_a_result,
    outputs_in_one_array,
    outputs_joined_in_each_round,
    parts_that_live_on,
    paths_that_are_used_again,
    paths_that_wait_for_their_mean,
    result_before_its_use,
    small_parts,
    small_slices,
    source_at_the_peak,
)
from tests.gpu.host_bound_programs import (
    compiled_for_each_value,
    compiled_once,
    copies_beside_kernels,
    copies_in_line,
    elements_at_once,
    elements_one_by_one,
    items_after_a_loop,
    items_of_small_arrays,
    masked_sums,
    scalars_after_a_loop,
    scalars_in_a_loop,
    small_launches,
    small_launches_as_a_graph,
    small_masks,
    small_wheres,
    sorted_on_the_gpu,
    sorted_on_the_host,
    sums_of_where,
    until_it_converges,
    uploads_of_pageable_memory,
    uploads_of_pinned_memory,
)
from tests.gpu.repeated_programs import (
    constants_in_each_step,
    constants_once,
    distances_in_each_step,
    distances_once,
    kernel_scaled_further_in_each_step,
    kernel_scaled_in_each_step,
    kernel_scaled_once,
    noise_in_each_step,
    noise_of_a_generator,
    other_batches,
    same_work_for_a_benchmark,
    spectra_of_many_lengths,
    spectra_of_one_length,
    spectrum_in_each_step,
    spectrum_once,
    steps_of_other_strides,
    weights_changed_in_a_new_array,
    weights_in_each_step,
    weights_of_the_step,
    weights_once,
    weights_that_change,
)
from tests.gpu.test_findings_about_time import (
    uses_the_default_stream,
    waits_for_needless_events,
    waits_needlessly,
)


@dataclass(frozen=True)
class Program:
    """A program, what follows the advice of a finding about it, and the rule of that finding.

    A program without a rule looks like one that has it, and has nothing to change.
    """

    rule: str
    plain: Callable[[], object]
    fixed: Callable[[], object] | None = None


def _of_arrays(rule: str, name: str) -> Program:
    plain, fixed = (getattr(array_programs, each) for each in (name, f"{name}_improved"))
    return Program(rule, partial(plain, cp), partial(fixed, cp))


PROGRAMS = (
    Program("R18", scalars_in_a_loop, scalars_after_a_loop),
    Program("R18", items_of_small_arrays, items_after_a_loop),
    Program("", until_it_converges),
    Program("R54", masked_sums, sums_of_where),
    Program("R54", small_masks, small_wheres),
    _of_arrays("R46", "large_parts"),
    Program("R46", many_parts, many_slices),
    Program("R46", small_parts, small_slices),
    Program("", parts_that_live_on),
    Program("R29", constants_in_each_step, constants_once),
    Program("", other_batches),
    Program("R08", updated_on_one_line, updated_by_one_kernel),
    Program("R08", accumulated, accumulated_by_one_kernel),
    Program("", scaled_in_place),
    Program("R08", summed_over_frequencies, summed_by_one_kernel),
    Program("", summed_over_arrays),
    Program("R57", weights_in_each_step, weights_once),
    Program("R57", distances_in_each_step, distances_once),
    Program("", steps_of_other_strides),
    Program("", weights_of_the_step),
    Program("R57", weights_that_change, weights_changed_in_a_new_array),
    Program("R42", noise_in_each_step, noise_of_a_generator),
    Program("", same_work_for_a_benchmark),
    _of_arrays("R01", "zeros_that_nothing_reads"),
    Program("R02", result_before_its_use, partial(result_before_its_use, late=True)),
    _of_arrays("R05", "idle_array"),
    Program("R07", new_array_for_a_result, partial(new_array_for_a_result, in_place=True)),
    _of_arrays("R08", "temporaries"),
    _of_arrays("R08", "distances"),
    Program("R09", history_of_arrays, history_of_means),
    Program("R10", cache_released_in_each_step, cache_kept),
    Program("R17", uploads_of_pageable_memory, uploads_of_pinned_memory),
    Program("R21", elements_one_by_one, elements_at_once),
    Program("R22", waits_needlessly, partial(waits_needlessly, waits=False)),
    Program("R23", uses_the_default_stream, partial(uses_the_default_stream, default=False)),
    Program("R24", waits_for_needless_events, partial(waits_for_needless_events, waits=False)),
    Program("R25", copies_in_line, copies_beside_kernels),
    Program("R27", small_launches, small_launches_as_a_graph),
    _of_arrays("R31", "zeros_that_are_overwritten"),
    _of_arrays("R33", "wide_weights"),
    _of_arrays("R34", "copied_coordinates"),
    Program("R43", sorted_on_the_host, sorted_on_the_gpu),
    Program("R45", source_at_the_peak, partial(source_at_the_peak, deleted=True)),
    Program("R47", compiled_for_each_value, compiled_once),
    _of_arrays("R49", "joined_in_a_loop"),
    Program("R49", outputs_joined_in_each_round, outputs_in_one_array),
    Program("R57", spectrum_in_each_step, spectrum_once),
    Program("R64", spectra_of_many_lengths, spectra_of_one_length),
    Program("R57", kernel_scaled_in_each_step, kernel_scaled_once),
    Program("", kernel_scaled_further_in_each_step),
    Program("R63", paths_that_wait_for_their_mean, means_of_paths),
    Program("", paths_that_are_used_again),
)
