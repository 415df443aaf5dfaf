"""A kernel of Loopy's, imported, proved and run."""

import numpy as np

import kingpost

try:
    import loopy as lp
except ImportError:
    print("skipped: Loopy is missing (pip install 'kingpost[loopy]')")
    raise SystemExit from None

knl = lp.make_kernel("{ [i]: 0<=i<n }", "out[i] = 2*a[i]", lang_version=(2018, 2))
knl = lp.add_dtypes(knl, {"a": np.float32})
knl = lp.split_iname(knl, "i", 128, outer_tag="g.0", inner_tag="l.0")

print(kingpost.prove_loopy(knl))  # or two instances that clash
imported = kingpost.from_loopy(knl)
print(imported.text)
for device in ("c", "opencl"):
    if device in kingpost.devices():
        a, out = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
        imported.compile(device)(a=a, **{imported.names.variables["out"]: out})
        assert (out == 2 * a).all()
