#!/usr/bin/env python3
"""Numbers the vertices and the tetrahedra of a Gmsh file (4.1, text) at random: shuffle_mesh.py FROM TO."""

import random
import sys


def sections(path):
    """The lines of each section by its name."""
    found, name = {}, None
    for line in open(path):
        line = line.strip()
        if line.startswith("$End"):
            name = None
        elif line.startswith("$"):
            name = line[1:]
            found[name] = []
        elif name:
            found[name].append(line)
    return found


def blocks(lines, lines_of):
    """Header and lines of each block; `lines_of` is how many lines an item has."""
    at = 1
    for _ in range(int(lines[0].split()[0])):
        header = [int(n) for n in lines[at].split()]
        count = header[3] * lines_of
        yield header, lines[at + 1 : at + 1 + count]
        at += 1 + count


TETRAHEDRON = 4


def main(source, target):
    found = sections(source)
    points = {}
    for header, lines in blocks(found["Nodes"], 2):
        points.update(zip(lines[: header[3]], lines[header[3] :]))
    cells = []
    for header, lines in blocks(found["Elements"], 1):
        if header[2] == TETRAHEDRON:
            cells.extend(line.split()[1:] for line in lines)
    used = sorted({tag for cell in cells for tag in cell}, key=int)
    numbers = random.Random(1)
    numbers.shuffle(used)
    numbers.shuffle(cells)
    tag = {old: str(new) for new, old in enumerate(used, 1)}
    n, m = len(used), len(cells)
    with open(target, "w") as out:
        out.write("$MeshFormat\n4.1 0 8\n$EndMeshFormat\n")
        out.write(f"$Nodes\n1 {n} 1 {n}\n3 1 0 {n}\n")
        out.writelines(f"{k}\n" for k in range(1, n + 1))
        out.writelines(f"{points[old]}\n" for old in used)
        out.write(f"$EndNodes\n$Elements\n1 {m} 1 {m}\n3 1 {TETRAHEDRON} {m}\n")
        out.writelines(f"{k} {' '.join(tag[old] for old in cell)}\n" for k, cell in enumerate(cells, 1))
        out.write("$EndElements\n")
    print(f"{n} vertices, {m} tetrahedra", file=sys.stderr)


main(*sys.argv[1:])
