"""PyTorch on gpuviz's caching allocator."""

from gpuviz.frameworks.torch import install, is_installed

__all__ = ["install", "is_installed"]
