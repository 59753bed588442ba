"""What findings advise of PyTorch's tensors."""

import pyarrow as pa
import pytest

from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice import (
    test_dead_write,
    test_launch_bound,
    test_pageable_copies,
    test_scalars_read_in_a_loop,
    test_tiny_transfers,
    test_unhidden_transfer,
    waiting_programs,
)
from tests.unit.advice.programs import within
from tests.unit.advice.timed_programs import timed


def of_torch(recording):
    """Return the recording as if torch had allocated its memory."""
    events = recording.tables["memory_events"]
    column = events.schema.get_field_index("framework")
    field = events.schema.field(column)
    words = pa.array(["torch"] * events.num_rows).dictionary_encode()
    changed = events.set_column(column, field, words.cast(field.type))
    return Recording({**recording.tables, "memory_events": changed}, recording.manifest)


def launches_one_by_one(gpu):
    array = gpu.empty(1 << 20)
    test_launch_bound.one_by_one(gpu)
    del array


@pytest.mark.parametrize(
    ("program", "rule", "advice"),
    [
        (test_pageable_copies.pageable, "R17", "DataLoader(..., pin_memory=True)"),
        (test_pageable_copies.reads, "R17", "host.copy_(tensor, non_blocking=True)"),
        (waiting_programs.reads_a_scalar, "R18", "loss.detach()"),
        (test_unhidden_transfer.only_to_device, "R25", "next_batch.to(device"),
        (test_unhidden_transfer.only_to_host, "R25", "host.copy_(result"),
        (launches_one_by_one, "R27", "torch.compile"),
        (test_tiny_transfers.each_element, "R21", "x.cpu()"),
        (test_dead_write.squares(), "R31", "`torch.empty` instead of `torch.zeros`"),
    ],
)
def test_a_finding_says_what_to_do_with_the_library_of_the_arrays(program, rule, advice):
    recording = timed(program)

    changes = {
        is_of_torch: [each.change for each in findings(of, small=True) if each.rule == rule]
        for is_of_torch, of in ((False, recording), (True, of_torch(recording)))
    }

    assert all(advice in change for change in changes[True])
    assert not any("torch" in change or "detach" in change for change in changes[False])
    assert len(changes[True]) == len(changes[False]) > 0


def test_copies_of_modules_that_the_host_initializes_are_left_out_by_making_them_on_the_gpu():
    file = "/env/lib/python3.12/site-packages/torch/nn/modules/module.py"
    recording = within(of_torch(timed(test_pageable_copies.pageable)), file, "Module.to")
    (change,) = [each.change for each in findings(recording, small=True) if each.rule == "R17"]

    assert change.startswith("Create the modules on the GPU")


def with_source(recording, before, after):
    """Return a recording in which a line has another text."""
    frames = recording.tables["frames"].to_pylist()
    rows = [row | {"source": after} if row["source"] == before else row for row in frames]
    changed = pa.Table.from_pylist(rows, recording.tables["frames"].schema)
    return Recording({**recording.tables, "frames": changed}, recording.manifest)


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("factor = torch.linalg.cholesky(k)", "`torch.linalg.cholesky_ex(..., check_errors"),
        ("return torch.inverse(a) @ b", "`torch.linalg.inv_ex(..., check_errors"),
        ("x = linalg.solve(a, b)", "`torch.linalg.solve_ex(..., check_errors"),
        ("norms.append(torch.linalg.inv(a).norm().item())", "Add up `loss.detach()`"),
        ("norms.append(torch.linalg.inv(a).norm().item())", "`torch.linalg.inv_ex(..., check_"),
        ("factor, info = torch.linalg.cholesky_ex(k)", "Add up `loss.detach()`"),
        ("factor = torch.linalg.cholesky(k.float())", "`torch.linalg.cholesky_ex(..., check_"),
        ("y = x @ a.inverse()", "`torch.linalg.inv_ex(..., check_errors"),
        ("errors.append(flow.inverse(z).norm().item())", "Add up `loss.detach()`"),
        ("factor = cholesky(k)", "`torch.linalg.cholesky_ex(..., check_errors"),
        ("factor = k.cholesky()", "`torch.linalg.cholesky_ex(..., check_errors"),
        ("values = torch.linalg.eigh(a)", None),
        ("worst.append(torch.linalg.eigvalsh(k)[0].item())", None),
        ("u, s, v = torch.svd(k)", None),
        ("u, s, v = svd(k.float())", None),
        ("p = torch.pinverse(a)", None),
        ("ranks.append(int(torch.linalg.matrix_rank(a)))", None),
        ("w = cp.linalg.inv(a)", "Leave the value on the GPU"),
        ("w.append(float(cupy.linalg.norm(cupy.linalg.cholesky(a))))", "Leave the value"),
        ("ranks.append(np.linalg.matrix_rank(a.cpu()))", "Leave the value on the GPU"),
    ],
)
def test_a_function_that_checks_its_result_is_left_out_by_one_that_does_not(source, advice):
    line = "_ = gpu.copy_to_host(x, pinned=True), gpu.synchronize()"
    recording = of_torch(timed(test_scalars_read_in_a_loop.reads_through_pinned_memory))
    found = findings(with_source(recording, line, source), small=True)
    changes = [each.change for each in found if each.rule == "R18"]

    assert [advice in each for each in changes] == ([] if advice is None else [True])
