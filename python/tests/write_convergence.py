"""Writes results/convergence.md and its plot: errors of manufactured problems on finer meshes.

    python write_convergence.py [--finest N]

`scripts/convergence.sh` installs what it needs. Meshes have 4, 8, ... cells a side up to N
[default: 32].
"""

from __future__ import annotations

import argparse
from pathlib import Path

import manufactured
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

RESULTS = Path(__file__).resolve().parents[2] / "results"
# A slope below the order by more than this is marked.
SHORT = 0.2


def main() -> None:
    """Solves all problems, and writes the page and the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--finest", type=int, default=32)
    finest = parser.parse_args().finest
    sizes = [n for n in (4, 8, 16, 32, 64, 128) if n <= finest]
    rows, curves = [], []
    for problem in manufactured.problems():
        errors = [manufactured.Discrete(problem, n).errors() for n in sizes]
        curves.append((problem, errors))
        slopes = manufactured.orders(errors[-2], errors[-1], 2)
        for name, order in problem.orders.items():
            values = " | ".join(f"{e[name]:.2e}" for e in errors)
            mark = "" if slopes[name] >= order - SHORT else " (below)"
            rows.append(
                f"| {problem.name} | `{name}` | {values} | {slopes[name]:.2f}{mark} | {order} | "
                f"{problem.source_of_orders} |"
            )
        print(problem.name, slopes, flush=True)
    _draw(sizes, curves)
    heads = " | ".join(f"n = {n}" for n in sizes)
    rules = "|".join("---:" for _ in sizes)
    patch = max(manufactured.Discrete(manufactured.patch(), 8).errors().values())
    (RESULTS / "convergence.md").write_text(
        f"""# Convergence of manufactured solutions

Written by `scripts/convergence.sh`. The unit square is cut into 2 n² triangles of any orientation and
numbering, with moved vertices. Matrices, right-hand sides and errors are UFL forms, compiled by
`kingpost.jit` for C; SciPy solves the linear systems. Errors are in the L² norm. The order is that between
the last two meshes.

| problem | error of | {heads} | order | theory | source |
|---|---|{rules}|---:|---:|---|
{chr(10).join(rows)}

![errors](convergence.svg)

A linear function through boundary and interior facets (interior penalty, DG1, n = 8) has an error of
{patch:.0e}.
"""
    )


def _draw(sizes: list[int], curves: list) -> None:
    # the same bytes for the same numbers
    plt.rcParams["svg.hashsalt"] = "kingpost"
    figure, axes = plt.subplots(3, 3, figsize=(11, 10), sharex=True)
    for axis, (problem, errors) in zip(axes.flat, curves, strict=True):
        for k, (name, order) in enumerate(problem.orders.items()):
            values = [e[name] for e in errors]
            (line,) = axis.loglog(sizes, values, "o-", label=name)
            ideal = [1.3 * values[-1] * (sizes[-1] / n) ** order for n in sizes]
            label = "the order of theory" if k == 0 else None
            axis.loglog(sizes, ideal, ":", color=line.get_color(), label=label)
        axis.set_title(problem.name, fontsize=9)
        axis.set_xticks(sizes, [str(n) for n in sizes])
        axis.minorticks_off()
        axis.legend(fontsize=7)
        axis.grid(True, alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("cells a side")
    for axis in axes[:, 0]:
        axis.set_ylabel("error in L²")
    figure.tight_layout()
    figure.savefig(RESULTS / "convergence.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
