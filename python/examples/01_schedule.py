"""A kernel, transformed by hand, on NumPy arrays."""

import numpy as np
import kingpost

kernel = kingpost.Kernel.parse("""
kernel axpy
param n: i32
arg a: f64 in
arg x: f64[n] in
arg y: f64[n] inout

for i in 0..n
  s: y[i] += a*x[i]
""")
s = kingpost.Schedule(kernel)
block, item = s.split("i", 128)  # proved legal, or refused with a witness
s.tag(block, "g.0")
s.tag(item, "l.0")

axpy = kingpost.compile(s, device="c")  # or "opencl", "cuda"
x, y = np.arange(1000.0), np.ones(1000)
axpy(a=2.0, x=x, y=y)  # in place; `n` follows from the shapes
assert np.array_equal(y, 1 + 2 * x)

print(s.kernel)
print(kingpost.source(s, "cuda"))
