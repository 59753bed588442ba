"""What kernels take, and how much of the GPU they fill."""
