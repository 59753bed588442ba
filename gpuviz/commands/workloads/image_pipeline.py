"""Spots counted in a series of images: flatten, smooth, threshold, label, measure.

Look for: ``background``, which lives as long as its image although only one line needs it, and the
thumbnails: small arrays that stay, between large ones of changing sizes that go.
"""

from typing import Any

IMAGES = 24
SIDE = 4096
SIZES = (1.0, 0.75, 1.25, 0.5)
SPACING = 64
SPOT_RADIUS = 5.0
NOISE = 0.1
THRESHOLD = 0.4


def main(scale: float = 1.0) -> dict[str, float]:
    """Return how many spots were found in all images, and their mean area in pixels.

    Raises:
        ArithmeticError: An image was made with another number of spots than were found in it.
    """
    import cupy as cp

    random = cp.random.default_rng(0)
    thumbnails = []
    spots = 0
    area = 0.0
    for number in range(IMAGES):
        side = SIDE * SIZES[number % len(SIZES)] * scale**0.5
        spots_across = max(2, int(side) // SPACING)
        found, image_area, thumbnail = _measure(_make_image(random, spots_across))
        if found != spots_across**2:
            raise ArithmeticError(
                f"image {number} has {spots_across**2} spots, but {found} were found",
            )
        spots += found
        area += image_area
        thumbnails.append(thumbnail)
    return {
        "images": float(len(thumbnails)),
        "spots": float(spots),
        "mean_area": area / spots,
        "thumbnail_bytes": float(sum(thumbnail.nbytes for thumbnail in thumbnails)),
    }


def _make_image(random: Any, spots_across: int) -> Any:
    """Return a noisy, unevenly lit square image with spots_across^2 spots of brightness 1."""
    import cupy as cp

    side = spots_across * SPACING
    position = cp.arange(side, dtype=cp.float32)
    offset = position % SPACING - SPACING / 2
    profile = cp.exp(-(offset**2) / (2 * SPOT_RADIUS**2))
    light = 1 + position / (4 * side)
    image = NOISE * random.standard_normal((side, side), dtype=cp.float32)
    image += cp.outer(profile, profile)
    image += cp.outer(light, light)
    return image


def _measure(image: Any) -> tuple[int, float, Any]:
    """Return the number of spots, their area together in pixels, and a thumbnail."""
    import cupy as cp
    from cupyx.scipy import ndimage

    background = ndimage.gaussian_filter(image, sigma=SPACING)
    flat = image - background
    clean = ndimage.median_filter(flat, size=3)
    smooth = ndimage.gaussian_filter(clean, sigma=2)
    labels, found = ndimage.label(smooth > THRESHOLD)
    areas = cp.bincount(labels.ravel(), minlength=int(found) + 1)[1:]
    thumbnail = ndimage.zoom(smooth, 1 / 8, order=1)
    return int(found), float(areas.sum()), thumbnail
