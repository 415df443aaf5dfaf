"""A kernel whose strides are parameters runs on views without a copy."""

import numpy as np

import kingpost

DOUBLED = """\
kernel doubled

param n: i32
param m: i32
param s: i64
param t: i64
arg x: f64[n, m] inout strides(s, t)

for i in 0..n
  for j in 0..m
    a: x[i, j] *= 2.0
"""

doubled = kingpost.compile(DOUBLED, "c")
whole = np.ones((6, 8))
doubled(x=whole[::2, 1:4])  # every other row
doubled(x=whole.T)  # by columns
windows = np.lib.stride_tricks.as_strided(whole, (4, 3), (8, 8))
try:
    doubled(x=windows)
except kingpost.LayoutError as error:
    print(error)
print(whole)
