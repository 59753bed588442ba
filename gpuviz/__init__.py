"""See what a CuPy program does to GPU memory and to CUDA streams."""

from importlib.metadata import version

__version__ = version("gpuviz")
__all__ = ["__version__"]
