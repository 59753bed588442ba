"""A training program of PyTorch, with what its allocator reserved.

``python torch_program.py PROGRAM [SNAPSHOT]`` runs it under ``PYTORCH_CUDA_ALLOC_CONF`` and writes
the peaks of allocated and reserved bytes, and the bytes of the device, as JSON. With SNAPSHOT, it
also writes a snapshot with the whole history.
"""

import json
import sys

import torch


def transformer() -> None:
    """Train on sequences of varying lengths, whose arrays fragment memory."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 1024, batch_first=True, dropout=0.0)
    model = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(10):
        length = 64 + 37 * (step * step % 11)
        loss = model(torch.ones(8, length, 512, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def convolutions() -> None:
    """Train on images of varying sizes; blocks of odd sizes are split."""
    torch.manual_seed(0)
    torch.backends.cudnn.enabled = False  # its workspaces depend on free memory
    layers = [torch.nn.Conv2d(a, b, 3) for a, b in ((3, 32), (32, 64), (64, 64))]
    model = torch.nn.Sequential(*layers).cuda()
    for step in range(8):
        side = 96 + 41 * (step * 5 % 7)
        model(torch.ones(4, 3, side, side, device="cuda")).mean().backward()


def growing() -> None:
    """Keep arrays that grow, beside temporary ones."""
    kept = []
    for step in range(1, 60):
        work = torch.empty(step << 20, dtype=torch.uint8, device="cuda")
        kept.append(torch.empty((step << 17) + 3000, dtype=torch.uint8, device="cuda"))
        del work
        if step % 7 == 0:
            del kept[::3]


PROGRAMS = {each.__name__: each for each in (transformer, convolutions, growing)}

if __name__ == "__main__":
    torch.cuda.memory._record_memory_history(max_entries=10_000_000, stacks="python")
    PROGRAMS[sys.argv[1]]()
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    if len(sys.argv) > 2:
        torch.cuda.memory._dump_snapshot(sys.argv[2])
    peaks = [stats[f"{name}_bytes.all.peak"] for name in ("allocated", "reserved")]
    json.dump([*peaks, torch.cuda.get_device_properties(0).total_memory], sys.stdout)
