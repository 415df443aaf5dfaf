#!/usr/bin/env python3
"""Write the quadrature tables that `kingpost-fem` embeds.

    python3 -m venv .venv && .venv/bin/pip install fenics-basix==0.11.0
    .venv/bin/python scripts/quadrature_tables.py JASKOWIEC_SUKUMAR.csv

Xiao-Gimbutas rules (Xiao & Gimbutas 2010) are taken from basix, the tetrahedral
rules of Jaśkowiec & Sukumar 2020 from a file with
the columns degree, x, y, z, weight, in which coordinates may carry more digits than a double holds.

Format of a table: a line `degree count`, then `count` lines `x y [z] weight`; shortest decimal that reads back as the
same double; weights sum to the volume of the unit simplex.
"""

import csv
import pathlib
import sys

import basix

OUT = pathlib.Path(__file__).resolve().parent.parent / "crates/fem/src/quadrature/data"


def write(name, rules):
    with open(OUT / name, "w", encoding="ascii") as out:
        for degree, rows in rules:
            print(degree, len(rows), file=out)
            for row in rows:
                print(*(repr(float(v)) for v in row), file=out)


def xiao_gimbutas(cell, top):
    for degree in range(1, top + 1):
        points, weights = basix.make_quadrature(cell, degree, rule=basix.QuadratureType.xiao_gimbutas)
        yield degree, [(*p, w) for p, w in zip(points, weights)]


def jaskowiec_sukumar(path):
    rules = {}
    with open(path, encoding="ascii") as table:
        for row in csv.DictReader(table):
            rules.setdefault(int(row["degree"]), []).append([row[c] for c in ("x", "y", "z", "weight")])
    return sorted(rules.items())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write("xiao_gimbutas_triangle.txt", xiao_gimbutas(basix.CellType.triangle, 30))
    write("xiao_gimbutas_tetrahedron.txt", xiao_gimbutas(basix.CellType.tetrahedron, 15))
    write("jaskowiec_sukumar_tetrahedron.txt", jaskowiec_sukumar(sys.argv[1]))
