"""CuPy on gpuviz's caching allocator."""

from gpuviz.frameworks.cupy import install, is_installed, uninstall

__all__ = ["install", "is_installed", "uninstall"]
