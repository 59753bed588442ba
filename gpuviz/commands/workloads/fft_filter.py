"""A band-pass filter over a long signal, in chunks: tries to overlap two from pageable memory.

Look for: two of everything. Each stream has its own blocks, FFT plan and work area, and memory
freed on one stream is not reused on the other. ``spectrum`` stays alive until the next chunk has
created its own. On the GPU's timeline: chunks run one after the other, although each has an
independent stream. The host's arrays are pageable, so the host waits in every copy; with arrays
of ``cupyx.empty_pinned`` it continues.
"""

from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np
from cupyx.scipy import fft

from gpuviz import name_stream

CHUNKS = 64
LINES = 1024
SAMPLES = 16_384
TONE_CYCLES = 440
HUM_CYCLES = 12
LARGEST_ERROR = 1e-3


def main(scale: float = 1.0) -> dict[str, float]:
    """Return the largest difference between the filtered signal and the tone hidden in it.

    Raises:
        ArithmeticError: A sample differs by more than 1e-3 from the tone, whose amplitude is 1.
    """
    lines = max(2, int(LINES * scale))
    tone, hum = _waves()
    lanes = [_Lane.make(lines, name) for name in ("even chunks", "odd chunks")]
    error = 0.0
    for chunk in range(CHUNKS + len(lanes)):
        lane = lanes[chunk % len(lanes)]
        if chunk >= len(lanes):
            lane.stream.synchronize()
            error = max(error, float(np.abs(lane.output - tone).max()))
        if chunk < CHUNKS:
            lane.input[...] = tone + (1 + chunk) * hum
            lane.start()
    if not error < LARGEST_ERROR:
        raise ArithmeticError(
            f"a filtered sample is {error} away from the tone, expected less than {LARGEST_ERROR}",
        )
    return {"samples": float(CHUNKS * lines * SAMPLES), "largest_error": error}


def _waves() -> tuple[Any, Any]:
    """Return one line of the tone to keep and of the hum to remove."""
    phase = 2 * np.pi * np.arange(SAMPLES) / SAMPLES
    return (
        np.sin(TONE_CYCLES * phase).astype(np.float32),
        np.sin(HUM_CYCLES * phase).astype(np.float32),
    )


@dataclass(slots=True)
class _Lane:
    """A stream with its own buffers and plans."""

    stream: Any
    input: Any
    output: Any
    response: Any
    plans: tuple[Any, Any]
    spectrum: Any = None

    @classmethod
    def make(cls, lines: int, name: str) -> "_Lane":
        shape = (lines, SAMPLES)
        stream = cp.cuda.Stream(non_blocking=True)
        name_stream(stream, name)
        with stream:
            cycles = cp.arange(SAMPLES // 2 + 1)
            response = ((cycles > TONE_CYCLES // 2) & (cycles < 2 * TONE_CYCLES)).astype(cp.float32)
            signal = cp.empty(shape, dtype=cp.float32)
            spectrum = cp.empty((lines, SAMPLES // 2 + 1), dtype=cp.complex64)
            # A plan's work area can be used on one stream at a time; CuPy caches plans globally.
            plans = (
                fft.get_fft_plan(signal, axes=1, value_type="R2C"),
                fft.get_fft_plan(spectrum, shape=SAMPLES, axes=1, value_type="C2R"),
            )
        return cls(
            stream=stream,
            input=np.empty(shape, dtype=np.float32),
            output=np.empty(shape, dtype=np.float32),
            response=response,
            plans=plans,
        )

    def start(self) -> None:
        """Start filtering the input into the output; neither may be used until it is done."""
        forward, backward = self.plans
        with self.stream:
            signal = cp.empty(self.input.shape, dtype=cp.float32)
            signal.set(self.input, stream=self.stream)
            self.spectrum = fft.rfft(signal, axis=1, plan=forward)
            passed = self.spectrum * self.response
            filtered = fft.irfft(passed, n=SAMPLES, axis=1, plan=backward)
            filtered.get(stream=self.stream, out=self.output, blocking=False)
