"""The calls, the GPU's work and the memory of a recording, replayed with changes."""
