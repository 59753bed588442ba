"""Counting of spots in a series of images: flatten, smooth, threshold, label, measure.

Look for: ``background``, which lives as long as its image although only one line needs it, and the
thumbnails: small permanent arrays between large temporary ones of varying sizes. On the GPU's
timeline: a separate stream copies label images to the host, hidden by kernels of the next image.
"""

from collections import deque
from typing import Any

import cupy as cp
import cupyx
from cupyx.scipy import ndimage

from gpuviz import name_stream

IMAGES = 24
SIDE = 4096
SIZES = (1.0, 0.75, 1.25, 0.5)
SPACING = 64
SPOT_RADIUS = 5.0
NOISE = 0.1
THRESHOLD = 0.4


def main(scale: float = 1.0) -> dict[str, float]:
    """Return the number of spots in all images, and their mean area in pixels.

    Raises:
        ArithmeticError: The number of spots found in an image differs from the true number.
    """
    spots_across = [max(2, int(SIDE * size * scale**0.5) // SPACING) for size in SIZES]
    thumbnails = []
    spots = 0
    area = 0.0
    with cp.cuda.Stream(non_blocking=True) as stream:
        name_stream(stream, "images")
        random = cp.random.default_rng(0)
        archive = _Archive((max(spots_across) * SPACING) ** 2)
        for number in range(IMAGES):
            across = spots_across[number % len(SIZES)]
            found, image_area, thumbnail = _measure(_make_image(random, across), archive)
            if found != across**2:
                raise ArithmeticError(
                    f"image {number} has {across**2} spots, but {found} were found",
                )
            spots += found
            area += image_area
            thumbnails.append(thumbnail)
        archive.finish()
    return {
        "images": float(len(thumbnails)),
        "spots": float(spots),
        "mean_area": area / spots,
        "thumbnail_bytes": float(sum(thumbnail.nbytes for thumbnail in thumbnails)),
    }


def _make_image(random: Any, spots_across: int) -> Any:
    """Return a noisy, unevenly lit square image with spots_across^2 spots of brightness 1."""
    side = spots_across * SPACING
    position = cp.arange(side, dtype=cp.float32)
    offset = position % SPACING - SPACING / 2
    profile = cp.exp(-(offset**2) / (2 * SPOT_RADIUS**2))
    light = 1 + position / (4 * side)
    image = NOISE * random.standard_normal((side, side), dtype=cp.float32)
    image += cp.outer(profile, profile)
    image += cp.outer(light, light)
    return image


def _measure(image: Any, archive: "_Archive") -> tuple[int, float, Any]:
    """Return the number of spots, their total area in pixels, and a thumbnail."""
    background = ndimage.gaussian_filter(image, sigma=SPACING)
    # The background's kernels run longest, so they hide a copy that starts now.
    archive.copy()
    flat = image - background
    clean = ndimage.median_filter(flat, size=3)
    smooth = ndimage.gaussian_filter(clean, sigma=2)
    labels, found = ndimage.label(smooth > THRESHOLD)
    archive.add(labels, int(found))
    areas = cp.bincount(labels.ravel(), minlength=int(found) + 1)[1:]
    thumbnail = ndimage.zoom(smooth, 1 / 8, order=1)
    return int(found), float(areas.sum()), thumbnail


class _Archive:
    """Copies label images to the host, through two alternating pinned buffers."""

    def __init__(self, pixels: int) -> None:
        self._stream = cp.cuda.Stream(non_blocking=True)
        name_stream(self._stream, "label copies")
        self._buffers = deque(cupyx.empty_pinned(pixels, dtype=cp.int32) for _ in range(2))
        self._added: tuple[Any, int, Any] | None = None
        # Arrays must live until they are copied, so they are kept with their copies and events.
        self._copying: deque[tuple[Any, int, Any, Any]] = deque()

    def add(self, labels: Any, found: int) -> None:
        """Add the labels of an image, computed on the current stream, to be copied later."""
        self._added = labels, found, cp.cuda.get_current_stream().record()

    def copy(self) -> None:
        """Start copying the latest labels, and check the previous copy."""
        if self._added is None:
            return
        labels, found, made = self._added
        self._added = None
        copied = self._buffers[0][: labels.size].reshape(labels.shape)
        self._buffers.rotate()
        self._stream.wait_event(made)
        labels.get(stream=self._stream, out=copied, blocking=False)
        self._copying.append((labels, found, copied, self._stream.record()))
        if len(self._copying) == len(self._buffers):
            self._check()

    def finish(self) -> None:
        """Copy and check the rest."""
        self.copy()
        while self._copying:
            self._check()

    def _check(self) -> None:
        """Compare the highest label of the oldest copy with the number of its spots."""
        _, found, copied, done = self._copying.popleft()
        done.synchronize()
        if copied.max() != found:
            raise ArithmeticError(
                f"the labels on the host go up to {copied.max()}, expected {found}",
            )
