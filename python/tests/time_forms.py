"""Exported forms from Python, on the arrays of the command line, next to its results: see scripts/ufl_forms.sh.

    python time_forms.py FORMS OUT DEVICE

Of each form, `OUT/arrays/NAME` has what `kingpost run --save-arrays --save-inputs` wrote. A line a kernel goes to
`OUT/python/NAME.txt`: its name, the time of a run as the command line measures it, that of a bound call, both in
seconds, the largest difference relative to the largest entry, and the mapping.
"""

import sys
import time
import traceback
from pathlib import Path

import kingpost
import numpy as np

CALLS, BATCHES = 60, 7


class Host:
    """Arrays of NumPy and the clock of the host."""

    def place(self, array):
        return array

    def fetch(self, array):
        return array

    def batch(self, call):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        return (time.perf_counter() - start) / CALLS


class Card:
    """Arrays of PyTorch on a card and its events."""

    def __init__(self):
        import torch

        self.torch = torch

    def place(self, array):
        return self.torch.from_numpy(array).cuda()

    def fetch(self, array):
        return array.cpu().numpy()

    def batch(self, call):
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(CALLS):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / CALLS / 1e3


def differences(found, expected):
    """The largest, relative to the largest entry, where both are finite; nan where nothing is."""
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(found)):
        return float("inf")
    return float(abs(found - expected)[finite].max() / abs(expected[finite]).max()) if finite.any() else float("nan")


def line(part, arrays, where):
    """A kernel on the arrays of a folder."""
    kernel = part.compiled
    names = {a.name for a in kernel.arguments if a.kind != "parameter"}
    given = {f.stem: np.load(f) for f in (arrays / "inputs").glob("*.npy") if f.stem in names}
    given = {k: where.place(v) if v.shape else v.item() for k, v in given.items()}
    results = {f.stem: np.load(f) for f in arrays.glob("*.npy")}
    kernel(**given)
    difference = max(differences(where.fetch(given[name]), expected) for name, expected in results.items())
    bound = kernel.bind(**given)
    batches = [where.batch(bound) for _ in range(1 + BATCHES)]
    call = sorted(batches[1:])[BATCHES // 2]
    return f"{kernel.kernel.name}\t{kernel.seconds(**given)}\t{call}\t{difference:.1e}\t{part.words}\n"


def main():
    forms, out, device = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    where = Card() if device.startswith("cuda") else Host()
    (out / "python").mkdir(exist_ok=True)
    failed = False
    for arrays in sorted((out / "arrays").iterdir()):
        try:
            # as the command line numbers them
            op = kingpost.jit(str(forms / f"{arrays.name}.json"), device, by_dimension=True)
            folders = [arrays if len(op.parts) == 1 else arrays / part.compiled.kernel.name for part in op.parts]
            lines = [line(part, folder, where) for part, folder in zip(op.parts, folders)]
        except Exception:  # the other forms are measured all the same
            traceback.print_exc()
            failed = True
            continue
        (out / "python" / f"{arrays.name}.txt").write_text("".join(lines))
        print("python", arrays.name, *lines, flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
