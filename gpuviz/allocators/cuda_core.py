"""cuda.core on gpuviz's caching allocator."""

from gpuviz.frameworks.cuda_core import install, is_installed, memory_resource, uninstall

__all__ = ["install", "is_installed", "memory_resource", "uninstall"]
