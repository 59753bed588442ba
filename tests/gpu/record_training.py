"""Records a small training program, whose recording ``notebooks/training.ipynb`` shows.

Usage: python tests/gpu/record_training.py FILE
"""

import sys

import torch

import gpuviz

STEPS = 4


class Block(torch.nn.Module):
    """A residual block, called by a line that calls all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256)
        self.norm = torch.nn.LayerNorm(256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sum of the input and what the layers make of it."""
        h = self.up(self.norm(x)).relu()
        return x + self.down(h)


class Layers(torch.nn.Module):
    """Three blocks and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))
        self.head = torch.nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the classes."""
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main(file: str) -> None:
    """Train for some steps, with memory for cuBLAS and a batch from the host."""
    inputs, labels = torch.randn(512, 256), torch.randint(0, 10, (512,))
    with gpuviz.record(file, overwrite=True):
        model = Layers().cuda()
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(STEPS):
            x, y = inputs.cuda(), labels.cuda()
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()


if __name__ == "__main__":
    main(sys.argv[1])
