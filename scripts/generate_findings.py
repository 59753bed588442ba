"""Writes the rules in docs/reference/findings.md, each with one example.

Usage: python -m scripts.generate_findings [--check]. The text between the marks in the file comes
from the rules; with ``--check`` nothing is written, and the exit status is 1 if it is out of date.
An example is what a rule says of a shipped recording, or of a program of the unit tests.
"""

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from types import ModuleType

import gpuviz
from gpuviz.advice import rules
from gpuviz.advice.finding import Finding
from gpuviz.advice.findings import allocator_rules
from gpuviz.advice.rule import Rule
from gpuviz.advice.work_rules import memory_rules, time_rules
from gpuviz.conclusions.wording import saving
from gpuviz.recording import Recording
from tests.unit.advice import (
    kept_arrays,
    ordered_streams,
    repeated_work,
    reserving_programs,
    test_anomaly_detection,
    test_attention_scores,
    test_checkpointed_activations,
    test_compiled_kernels,
    test_complex_ffts_of_real_data,
    test_dead_write,
    test_dense_embedding_gradients,
    test_dense_targets,
    test_differences_of_pairs,
    test_differentiable_backward,
    test_double_precision,
    test_early_allocation,
    test_einsum_intermediates,
    test_emptied_caches,
    test_exchangeable_copies,
    test_freed_by_collections,
    test_graphs_alive_at_once,
    test_grown_by_concatenation,
    test_images_in_nchw,
    test_inference_with_gradients,
    test_interleaved_fields,
    test_inverse_only_multiplied,
    test_kept_until_reduced,
    test_loaded_again,
    test_longer_than_used,
    test_loss_kept_with_its_graph,
    test_materialized_broadcast,
    test_matrices_one_by_one,
    test_matrix_products,
    test_memory_cached_for_streams,
    test_missed_in_place,
    test_models_no_longer_used,
    test_mostly_unread_result,
    test_needless_events,
    test_needless_synchronization,
    test_one_hot_products,
    test_optimizer_memory,
    test_order_of_products,
    test_partly_used_copies,
    test_retained_graph,
    test_retry_within_except,
    test_round_trips,
    test_same_bytes_again,
    test_same_bytes_twice,
    test_slow_fft_lengths,
    test_temporary_idleness,
    test_tiny_transfers,
    test_unhidden_transfer,
    test_unordered_operations,
    test_unused_allocation,
    test_unused_gradients,
    test_views_of_large_arrays,
    test_waits_for_sizes,
    test_wider_type,
    training,
)
from tests.unit.advice.arrays import of_arrays
from tests.unit.advice.programs import recorded
from tests.unit.advice.timed_programs import timed
from tests.unit.analysis import growing_programs
from tests.unit.ipython_shells import new_shell
from tests.unit.recording import leaking_programs
from tests.unit.replay import segment_programs

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "reference" / "findings.md"
SHIPPED = ROOT / "gpuviz" / "commands" / "recordings"
NUMBA = ROOT / "tests" / "unit" / "advice" / "data" / "heat.gpuviz"
TWO_GPUS = ROOT / "tests" / "unit" / "two_gpus" / "data"
# Where a line stands on this machine.
PLACE = re.compile(r"\([^()\s]*/(\w+\.py):\d+\)")
FILE = r"(\1)"
MARKED = re.compile(r"(<!-- rules: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

Program = Callable[[gpuviz.SimulatedGPU], None]

# Programs of the unit tests that show a rule.
PROGRAMS: dict[str, Program] = {
    "R01": test_unused_allocation.allocates(),
    "R02": test_early_allocation.early,
    "R03": test_longer_than_used.all_at_once,
    "R05": test_temporary_idleness.keeps(),
    "R07": test_missed_in_place.wasteful,
    "R10": test_emptied_caches.waits,
    "R21": test_tiny_transfers.each_element,
    "R22": test_needless_synchronization.synchronizes_after_each_kernel,
    "R23": ordered_streams.copies_on_the_default_stream,
    "R24": test_needless_events.waits_for_events_of_one,
    "R25": test_unhidden_transfer.on_one_stream,
    "R30": test_dead_write.overwritten_result(),
    "R31": test_dead_write.squares(),
    "R33": test_wider_type.weighs(),
    "R34": test_materialized_broadcast.one_copy,
    "R40": test_unordered_operations.races,
    "R45": kept_arrays.keeps,
    "R46": test_same_bytes_twice.copies_each(),
    "R47": test_compiled_kernels.passes_values_as_arguments,
    "R49": test_grown_by_concatenation.by_copies,
    "R54": test_waits_for_sizes.selects,
    "R67": test_views_of_large_arrays.joins_views,
    "R68": test_mostly_unread_result.computes(test_mostly_unread_result.copied),
}
# The same about reserved memory, on a GPU with little of it.
RESERVING: dict[str, Program] = {
    "R11": segment_programs.small_before_large,
    "R15": test_memory_cached_for_streams.two_phases,
    "R16": test_memory_cached_for_streams.parked,
}
# Recordings of programs on real GPUs that show a rule.
RECORDINGS = {
    **dict.fromkeys(("R08", "R18", "R42"), SHIPPED / "kmeans.gpuviz"),
    **dict.fromkeys(("R17", "R43", "R44"), SHIPPED / "fft_filter.gpuviz"),
    "R27": SHIPPED / "conjugate_gradient.gpuviz",
    "R41": SHIPPED / "image_pipeline.gpuviz",
    "R48": TWO_GPUS / "training_late_rank.gpuviz",
    "R56": TWO_GPUS / "relay_staged.gpuviz",
    "R65": NUMBA,
    "R72": SHIPPED / "one_pool_separate.gpuviz",
}
CELLS = (
    "%load_ext gpuviz",
    "import gpuviz\ngpu = gpuviz.SimulatedGPU(real_time=False)",
    "%gpuviz start --simulated gpu",
    "x = gpu.empty(32 << 20)\ngpu.launch('make', duration=1e-4, writes=[x])",
    *["y = gpu.empty(4 << 20)\ngpu.launch('other', duration=1e-4, writes=[y])"] * 2,
    "z = gpu.empty(64 << 20)\ngpu.launch('large', duration=1e-4, writes=[z])",
)


def notebook() -> Recording:
    """Return the recording of some cells."""
    with new_shell() as shell, redirect_stdout(StringIO()):
        for cell in CELLS:
            shell.run_cell(cell, store_history=True)
        found: Recording = shell.run_cell("%gpuviz stop").result
        del shell.user_ns["x"], shell.user_ns["y"], shell.user_ns["z"]
        return found


def growing() -> Recording:
    """Return the recording of a program that keeps an array of each iteration."""
    return growing_programs.of(leaking_programs.a_list)


def uploading() -> Recording:
    """Return the recording of a program that copies the same constants in each step."""
    copied = timed(test_same_bytes_again.uploads)
    return test_same_bytes_again.with_contents(copied, [1] * test_same_bytes_again.STEPS)


def making_plans() -> Recording:
    """Return the recording of a program that makes an FFT plan in each round."""
    return test_loaded_again.with_loads(timed(test_loaded_again.makes_plans))


# Training programs that show a rule.
TRAINING: dict[str, Program] = {
    "R50": test_loss_kept_with_its_graph.with_graph,
    "R51": test_inference_with_gradients.serves(gradients=True),
    "R52": test_checkpointed_activations.trains(test_checkpointed_activations.NAMES),
    "R53": test_optimizer_memory.trains(zero_grad="zero"),
    "R58": test_graphs_alive_at_once.accumulates(at_once=True),
    "R59": test_retained_graph.trains_twice(retain=True),
    "R82": test_differentiable_backward.trains(create_graph=True),
    "R66": test_dense_embedding_gradients.trains(),
    "R69": test_models_no_longer_used.folds(keep=test_models_no_longer_used.all_of),
    "R70": test_anomaly_detection.trains(),
    "R71": test_double_precision.trains(),
    "R79": test_images_in_nchw.network(beside=test_images_in_nchw.NORMALIZATION),
}
OTHERS = {
    "R04": notebook,
    "R09": growing,
    "R29": uploading,
    "R61": partial(test_unused_gradients.trained, test_unused_gradients.trains("rate")),
    "R62": test_round_trips.through_the_host,
    "R73": partial(test_retry_within_except.recorded, test_retry_within_except.tries_within),
    "R74": partial(test_freed_by_collections.recorded, test_freed_by_collections.with_cycles),
    "R75": partial(test_inverse_only_multiplied.recorded, test_inverse_only_multiplied.multiplies),
    "R76": partial(test_einsum_intermediates.recorded, test_einsum_intermediates.multiplies_first),
    "R81": partial(test_dense_targets.recorded, test_dense_targets.with_dense_targets),
    "R83": partial(test_dense_targets.recorded, test_one_hot_products.multiplies),
    "R84": test_partly_used_copies.takes_a_part,
    "R85": test_complex_ffts_of_real_data.takes_half,
    "R87": test_slow_fft_lengths.convolves_slowly,
    "R86": partial(of_arrays, test_exchangeable_copies.copies_three_levels),
    "R88": partial(test_matrices_one_by_one.recorded, test_matrices_one_by_one.solves_each),
    "R89": partial(test_interleaved_fields.recorded, test_interleaved_fields.diffuses),
    "R90": partial(test_order_of_products.recorded, test_order_of_products.attends),
    "R91": partial(test_dense_targets.recorded, test_differences_of_pairs.square_distances),
    "R63": partial(timed, test_kept_until_reduced.means_at_last),
    "R64": making_plans,
    "R60": partial(test_attention_scores.recorded, test_attention_scores.stored),
    "R57": partial(of_arrays, repeated_work.in_each_round),
    "R77": partial(test_matrix_products.recorded_on, test_matrix_products.FLOAT32),
    "R78": partial(test_matrix_products.recorded_on, test_matrix_products.UNALIGNED),
    **{name: partial(training.recorded, program) for name, program in TRAINING.items()},
}


def example(name: str) -> Finding:
    """Return a finding of a rule."""
    if name in RECORDINGS:
        recording = gpuviz.load(RECORDINGS[name])
    elif name in RESERVING:
        recording = reserving_programs.recorded(RESERVING[name])
    elif name in OTHERS:
        recording = OTHERS[name]()
    elif name in PROGRAMS:
        recording = recorded(PROGRAMS[name])
    else:
        raise LookupError(f"{name} has no example: add one to PROGRAMS in {__file__}")
    return next(each for each in recording.findings(small=True) if each.rule == name)


def section(rule: Rule) -> str:
    """Return the section of a rule."""
    found = example(rule.name)
    saved = saving(found)
    texts = [found.title, f"Saves {saved}." if saved else "", found.reason, found.change]
    quoted = "\n>\n".join(f"> {text}" for text in texts if text)
    return (
        f"### {rule.name}: {rule.finding}\n\n"
        f"{sentence(rule.trigger)}\n\n"
        f"**What to change:** {sentence(rule.change)}\n\n"
        f"For example ({found.certainty}):\n\n{PLACE.sub(FILE, quoted)}\n"
    )


def sentence(text: str) -> str:
    """Return a text as a sentence of its own."""
    first = text if text.startswith(("`", "[")) else text[0].upper() + text[1:]
    return first if first.endswith((".", "?")) else f"{first}."


def modules() -> dict[str, ModuleType]:
    """Return the modules of the rules, by name."""
    names = [each.name for each in pkgutil.iter_modules(rules.__path__)]
    return {name: importlib.import_module(f"gpuviz.advice.rules.{name}") for name in names}


def kinds() -> dict[str, list[Rule]]:
    """Return the rules of each part of the document, in the order of their numbers."""
    parts = {"memory": memory_rules(), "reserved": allocator_rules(), "time": time_rules()}
    of_part = {find.__module__: part for part, found in parts.items() for find in found}
    others = {"r03_longer_than_used": "memory", "r40_unordered_operations": "results"}
    others["r48_late_rank"] = "processes"
    others["r72_cached_by_another_library"] = "reserved"
    found: dict[str, list[Rule]] = {}
    for name, module in modules().items():
        part = of_part.get(module.__name__) or others[name]
        for rule in module.RULES:
            # Fills, dead writes and inverses are about time, and found with the arrays.
            is_time = rule.name in ("R30", "R31", "R75", "R88")
            found.setdefault("time" if is_time else part, []).append(rule)
    return {part: sorted(each, key=lambda rule: rule.name) for part, each in found.items()}


def generated(text: str) -> str:
    """Return the document with the sections of all rules."""
    found = kinds()

    def part(match: re.Match[str]) -> str:
        sections = "\n".join(section(each) for each in found.pop(match[2]))
        return f"{match[1]}\n{sections}\n{match[3]}"

    made = MARKED.sub(part, text)
    if found:
        raise SystemExit(
            f"docs/reference/findings.md has no marks for the rules about {', '.join(found)}."
        )
    return made


def main(arguments: list[str]) -> Iterator[str]:
    """Yield the document if it is out of date, after it is written unless it is to be checked."""
    text = DOCUMENT.read_text(encoding="utf-8")
    made = generated(text)
    if made != text:
        if "--check" not in arguments:
            DOCUMENT.write_text(made, encoding="utf-8")
        yield str(DOCUMENT.relative_to(ROOT))


if __name__ == "__main__":
    outdated = list(main(sys.argv[1:]))
    sys.stdout.write("".join(f"{each}\n" for each in outdated))
    sys.exit(bool(outdated) and "--check" in sys.argv)
