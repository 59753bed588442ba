"""RMM, and with it cuDF and cuML, on gpuviz's caching allocator."""

from gpuviz.frameworks.rmm import install, is_installed, uninstall

__all__ = ["install", "is_installed", "uninstall"]
