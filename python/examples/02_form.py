"""The action of the Laplace operator on a mesh of NumPy arrays."""

import numpy as np
import kingpost

op = kingpost.jit("laplace", device="c", dim=2, degree=1)
print(op.recipe)

# two triangles of the unit square: vertices, and the degrees of freedom of each cell
x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
cells = np.array([[0, 1, 2], [1, 3, 2]], dtype=np.int32)
inputs = {a.name: cells if a.dtype == "i32" else x for a in op.arguments if len(a.shape) == 2}
y = np.zeros(4)
op(y, u=x[:, 0] + x[:, 1], **inputs)  # the gradient of x + y is (1, 1)
assert np.allclose(y, [-1, 0, 0, 1])
