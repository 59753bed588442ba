"""Heat that spreads in an array of the host: recorded as nb.py with ``gpuviz run nb.py``.

On an H200, with Numba's own CUDA target.
"""

import numpy as np
from numba import cuda


@cuda.jit
def heat(u, v, k):
    i, j = cuda.grid(2)
    if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        v[i, j] = u[i, j] + k * (around - 4 * u[i, j])


u = np.zeros((2048, 2048), np.float32)
u[1000:1050, 1000:1050] = 100
v = u.copy()
snapshots = []
for step in range(200):
    heat[(128, 128), (16, 16)](u, v, 0.2)
    u, v = v, u
    if step % 20 == 0:
        snapshots.append(u.max())
