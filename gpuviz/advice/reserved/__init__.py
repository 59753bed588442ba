"""The memory that an allocator reserves beyond what the program holds."""
