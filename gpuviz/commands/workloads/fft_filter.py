"""A band-pass filter over a long signal, in chunks: tries to overlap two from pageable memory.

Look for: two of everything. Each stream has blocks and an FFT plan with a work area of its own,
and what one stream has freed does not serve the other. ``spectrum`` stays alive until the next
chunk has made its own. On the GPU's time line: chunks one after the other, although each has a
stream that waits for no other. The host's arrays are pageable, so the host waits in every copy;
arrays of ``cupyx.empty_pinned`` let it go on.
"""

from dataclasses import dataclass
from typing import Any

CHUNKS = 64
LINES = 1024
SAMPLES = 16_384
TONE_CYCLES = 440
HUM_CYCLES = 12
LARGEST_ERROR = 1e-3


def main(scale: float = 1.0) -> dict[str, float]:
    """Return the largest difference between the filtered signal and the tone hidden in it.

    Raises:
        ArithmeticError: A sample is more than 1e-3 away from the tone, whose amplitude is 1.
    """
    import numpy as np

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
    import numpy as np

    phase = 2 * np.pi * np.arange(SAMPLES) / SAMPLES
    return (
        np.sin(TONE_CYCLES * phase).astype(np.float32),
        np.sin(HUM_CYCLES * phase).astype(np.float32),
    )


@dataclass(slots=True)
class _Lane:
    """A stream with buffers and plans of its own, shared with no other."""

    stream: Any
    input: Any
    output: Any
    response: Any
    plans: tuple[Any, Any]
    spectrum: Any = None

    @classmethod
    def make(cls, lines: int, name: str) -> "_Lane":
        import cupy as cp
        import numpy as np
        from cupyx.scipy.fft import get_fft_plan

        from gpuviz import name_stream

        shape = (lines, SAMPLES)
        stream = cp.cuda.Stream(non_blocking=True)
        name_stream(stream, name)
        with stream:
            cycles = cp.arange(SAMPLES // 2 + 1)
            response = ((cycles > TONE_CYCLES // 2) & (cycles < 2 * TONE_CYCLES)).astype(cp.float32)
            signal = cp.empty(shape, dtype=cp.float32)
            spectrum = cp.empty((lines, SAMPLES // 2 + 1), dtype=cp.complex64)
            # A plan's work area serves one stream at a time; CuPy's plan cache is for all streams.
            plans = (
                get_fft_plan(signal, axes=1, value_type="R2C"),
                get_fft_plan(spectrum, shape=SAMPLES, axes=1, value_type="C2R"),
            )
        return cls(
            stream=stream,
            input=np.empty(shape, dtype=np.float32),
            output=np.empty(shape, dtype=np.float32),
            response=response,
            plans=plans,
        )

    def start(self) -> None:
        """Begin filtering the input into the output; both are the stream's until it is done."""
        import cupy as cp
        from cupyx.scipy import fft

        forward, backward = self.plans
        with self.stream:
            signal = cp.empty(self.input.shape, dtype=cp.float32)
            signal.set(self.input, stream=self.stream)
            self.spectrum = fft.rfft(signal, axis=1, plan=forward)
            passed = self.spectrum * self.response
            filtered = fft.irfft(passed, n=SAMPLES, axis=1, plan=backward)
            filtered.get(stream=self.stream, out=self.output, blocking=False)
