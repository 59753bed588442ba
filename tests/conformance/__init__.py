"""Replays of recorded programs of torch's CUDA caching allocator, and their differences."""
