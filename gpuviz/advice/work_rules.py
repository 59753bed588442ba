"""The rules about the work of a recording: about arrays, and about time."""

from typing import TYPE_CHECKING

from gpuviz.advice.rules import (
    r02_early_allocation,
    r04_kept_by_the_notebook,
    r05_temporary_idleness,
    r07_missed_in_place,
    r08_chain_of_temporaries,
    r09_growing_memory,
    r10_emptied_caches,
    r17_pageable_copies,
    r18_scalars_read_in_a_loop,
    r21_tiny_transfers,
    r22_needless_synchronization,
    r23_default_stream_order,
    r24_needless_event,
    r25_unhidden_transfer,
    r27_launch_bound,
    r29_same_bytes_again,
    r30_dead_write,
    r33_wider_type,
    r34_materialized_broadcast,
    r41_waits_for_earlier_work,
    r42_underfilled_kernel,
    r43_starved_by_the_host,
    r44_streams_that_never_overlap,
    r45_dead_at_the_peak,
    r46_same_bytes_twice,
    r47_compiled_kernels,
    r49_grown_by_concatenation,
    r50_loss_kept_with_its_graph,
    r51_inference_with_gradients,
    r52_checkpointed_activations,
    r53_optimizer_memory,
    r54_hidden_synchronization,
    r56_staged_copies,
    r57_same_result_again,
    r58_graphs_alive_at_once,
    r59_retained_graph,
    r60_attention_scores,
    r61_unused_gradients,
    r62_round_trips,
    r63_kept_until_reduced,
    r64_loaded_again,
    r65_host_arrays_of_kernels,
    r66_dense_embedding_gradients,
    r67_views_of_large_arrays,
    r68_mostly_unread_result,
    r69_models_no_longer_used,
    r70_anomaly_detection,
    r71_double_precision,
    r73_retry_within_except,
    r74_freed_by_collections,
    r75_inverse_only_multiplied,
    r76_einsum_intermediates,
    r77_float32_products,
    r78_unaligned_products,
    r79_images_in_nchw,
    r81_dense_targets,
    r82_differentiable_backward,
    r83_one_hot_products,
    r84_partly_used_copies,
    r85_complex_ffts_of_real_data,
    r86_exchangeable_copies,
    r87_slow_fft_lengths,
    r88_matrices_one_by_one,
    r89_interleaved_fields,
    r90_order_of_products,
    r91_differences_of_pairs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpuviz.advice.arrays.device_blocks import DeviceBlocks
    from gpuviz.advice.finding import Finding
    from gpuviz.advice.replay.schedule import Schedule

    TimeRule = Callable[[Schedule], Iterable[Finding]]
    MemoryRule = Callable[[DeviceBlocks], Iterable[Finding]]


def memory_rules() -> "tuple[MemoryRule, ...]":
    """Return the rules about the memory of a device, each in the file named after it.

    They say which lifetimes change; what that saves is computed in one place, `_about_memory`.
    Of two that save the same bytes, the earlier is easier to follow.
    """
    return (
        r50_loss_kept_with_its_graph.find,
        r51_inference_with_gradients.find,
        r61_unused_gradients.find,
        r66_dense_embedding_gradients.find,
        r82_differentiable_backward.find,
        r59_retained_graph.find,
        r60_attention_scores.find,
        r58_graphs_alive_at_once.find,
        r63_kept_until_reduced.find,
        r67_views_of_large_arrays.find,
        r68_mostly_unread_result.find,
        r69_models_no_longer_used.find,
        r73_retry_within_except.find,
        r74_freed_by_collections.find,
        r09_growing_memory.find,
        r04_kept_by_the_notebook.find,
        r45_dead_at_the_peak.find,
        r02_early_allocation.find,
        r49_grown_by_concatenation.find,
        r46_same_bytes_twice.find,
        r34_materialized_broadcast.find,
        r57_same_result_again.find,
        r75_inverse_only_multiplied.find,
        r76_einsum_intermediates.find,
        r81_dense_targets.find,
        r83_one_hot_products.find,
        r90_order_of_products.find,
        r91_differences_of_pairs.find,
        r85_complex_ffts_of_real_data.find,
        r86_exchangeable_copies.find,
        r87_slow_fft_lengths.find,
        r88_matrices_one_by_one.find,
        r08_chain_of_temporaries.find,
        r07_missed_in_place.find,
        r30_dead_write.find,
        r33_wider_type.find,
        r71_double_precision.find,
        r77_float32_products.find,
        r78_unaligned_products.find,
        r89_interleaved_fields.find,
        r05_temporary_idleness.find,
        r53_optimizer_memory.find,
        r52_checkpointed_activations.find,
    )


def time_rules() -> "tuple[TimeRule, ...]":
    """Return the rules about the time of a recording, each in the file named after it.

    Of two that save about the same time, the earlier is easier to follow.
    """
    return (
        r10_emptied_caches.find,
        r70_anomaly_detection.find,
        r62_round_trips.find,
        r65_host_arrays_of_kernels.find,
        r84_partly_used_copies.find,
        r17_pageable_copies.find,
        r18_scalars_read_in_a_loop.find,
        r21_tiny_transfers.find,
        r22_needless_synchronization.find,
        r23_default_stream_order.find,
        r24_needless_event.find,
        r25_unhidden_transfer.find,
        r27_launch_bound.find,
        r29_same_bytes_again.find,
        r41_waits_for_earlier_work.find,
        r42_underfilled_kernel.find,
        r43_starved_by_the_host.find,
        r44_streams_that_never_overlap.find,
        r47_compiled_kernels.find,
        r54_hidden_synchronization.find,
        r56_staged_copies.find,
        r79_images_in_nchw.find,
        r64_loaded_again.find,
    )
