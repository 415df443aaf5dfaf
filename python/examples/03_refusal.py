"""A step that is not legal keeps its witness."""

import kingpost

s = kingpost.Schedule("""
kernel carried
param n: i32
arg a: f64[n, n] inout

for i in 1..n
  for j in 0..n - 1
    s: a[i, j] = a[i - 1, j + 1]
""")
try:
    s.interchange_inames("i", "j")
except kingpost.Refusal as refusal:
    witness = refusal.witness
    assert witness is not None  # two instances show it
    print(refusal)
    print(witness.source, "before", witness.sink, "at", witness.element)
    assert str(witness.sink) == "s[2,0]"
else:
    raise AssertionError("it changes the result")
