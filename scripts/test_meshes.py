#!/usr/bin/env python3
"""Write the small Gmsh files `crates/fem/tests/data/sector_*.msh` of every cell, order and format.

    python3 -m venv .venv && .venv/bin/pip install gmsh==4.15.2
    .venv/bin/python scripts/test_meshes.py

A quarter of the ring between radius 1 and 2, extruded by 1 for solids, is cut into cells that are
curved from order 2 on. The inner arc has tag 11, the outer 12, the cells have 7; other facets are not
saved. `sector_mixed.msh` has triangles and quadrangles.

`groups_*.msh` is the unit square in the groups 7 and 8: its lower side is in 11 and 12, its right side in
11 with the other orientation, its upper side in 12, and its left side in none. `groups_parts_*.msh` is the
same in three partitions.
"""

import pathlib

import gmsh

DATA = pathlib.Path(__file__).resolve().parent.parent / "crates/fem/tests/data"
FORMATS = {"41": (4.1, 0), "41_binary": (4.1, 1), "22": (2.2, 0), "22_binary": (2.2, 1)}


def sector(geo, start, end, recombine, solid):
    """A ring between two angles in quarters, by points on both radii."""
    from math import cos, pi, sin

    origin = geo.addPoint(0, 0, 0)
    corner = [
        geo.addPoint(r * cos(a * pi / 2), r * sin(a * pi / 2), 0) for r in (1, 2) for a in (start, end)
    ]
    inner = geo.addCircleArc(corner[0], origin, corner[1])
    outer = geo.addCircleArc(corner[2], origin, corner[3])
    sides = [geo.addLine(corner[0], corner[2]), geo.addLine(corner[1], corner[3])]
    face = geo.addPlaneSurface([geo.addCurveLoop([sides[0], outer, -sides[1], -inner])])
    for curve, points in ((inner, 3), (outer, 3), (sides[0], 2), (sides[1], 2)):
        geo.mesh.setTransfiniteCurve(curve, points)
    geo.mesh.setTransfiniteSurface(face)
    if recombine:
        geo.mesh.setRecombine(2, face)
    if not solid:
        return [face], [inner], [outer]
    made = geo.extrude([(2, face)], 0, 0, 1, numElements=[1], recombine=recombine)
    # the face at the end, the volume, and the sides in the order of the loop
    return [made[1][1]], [made[5][1]], [made[3][1]]


def model(parts, dim):
    gmsh.clear()
    geo = gmsh.model.geo
    cells, inner, outer = [], [], []
    for start, end, recombine in parts:
        some = sector(geo, start, end, recombine, dim == 3)
        for group, found in zip((cells, inner, outer), some):
            group += found
    geo.synchronize()
    gmsh.model.addPhysicalGroup(dim, cells, 7)
    gmsh.model.addPhysicalGroup(dim - 1, inner, 11)
    gmsh.model.addPhysicalGroup(dim - 1, outer, 12)
    gmsh.model.mesh.generate(dim)


def write(name, version, binary):
    gmsh.option.setNumber("Mesh.MshFileVersion", version)
    gmsh.option.setNumber("Mesh.Binary", binary)
    gmsh.write(str(DATA / f"{name}.msh"))


def solids(order):
    """Boxes along x: prisms, then hexahedra, then, through pyramids, tetrahedra."""
    gmsh.clear()
    geo = gmsh.model.geo
    corners = [geo.addPoint(x, y, 0, 0.5) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))]
    curves = [geo.addLine(corners[k], corners[(k + 1) % 4]) for k in range(4)]
    for curve in curves:
        geo.mesh.setTransfiniteCurve(curve, 3)
    base = geo.addPlaneSurface([geo.addCurveLoop(curves)])
    prisms = geo.extrude([(2, base)], 0, 0, 1, numElements=[2], recombine=True)
    # the face at the end, the volume, and the sides in the order of the loop
    bricks = geo.extrude([prisms[3]], 1, 0, 0, numElements=[2], recombine=True)
    rest = geo.extrude([bricks[0]], 1, 0, 0)
    geo.synchronize()
    volumes = [made[1][1] for made in (prisms, bricks, rest)]
    inlet = prisms[5][1]
    gmsh.model.addPhysicalGroup(3, volumes, 1, name="everything")
    gmsh.model.addPhysicalGroup(3, [volumes[2]], 2, name="last box")
    gmsh.model.addPhysicalGroup(2, [inlet], 3, name="inlet")
    gmsh.model.addPhysicalGroup(2, [-inlet, base], 4)
    gmsh.model.mesh.generate(3)
    gmsh.model.mesh.setOrder(order)


def sphere():
    gmsh.clear()
    gmsh.model.occ.addSphere(0, 0, 0, 1)
    gmsh.model.occ.synchronize()
    gmsh.model.addPhysicalGroup(2, [tag for _, tag in gmsh.model.getEntities(2)], 1)
    gmsh.option.setNumber("Mesh.MeshSizeMax", 0.7)
    gmsh.model.mesh.generate(2)
    gmsh.model.mesh.setOrder(2)
    gmsh.option.setNumber("Mesh.MeshSizeMax", 1e22)


def groups():
    gmsh.clear()
    geo = gmsh.model.geo
    corners = [geo.addPoint(x, y, 0, 0.4) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))]
    lower, right, upper, left = (geo.addLine(corners[k], corners[(k + 1) % 4]) for k in range(4))
    face = geo.addPlaneSurface([geo.addCurveLoop([lower, right, upper, left])])
    geo.synchronize()
    gmsh.model.addPhysicalGroup(1, [lower, -right], 11)
    gmsh.model.addPhysicalGroup(1, [upper, lower], 12)
    gmsh.model.addPhysicalGroup(2, [face], 7)
    gmsh.model.addPhysicalGroup(2, [-face], 8)
    gmsh.model.mesh.generate(2)
    for suffix, (version, binary) in FORMATS.items():
        write(f"groups_{suffix}", version, binary)
    gmsh.model.mesh.partition(3)
    for suffix, (version, binary) in FORMATS.items():
        write(f"groups_parts_{suffix}", version, binary)


def main():
    gmsh.initialize()
    gmsh.option.setNumber("General.Verbosity", 0)
    shapes = [("triangle", 2, False), ("quadrangle", 2, True), ("tetrahedron", 3, False), ("hexahedron", 3, True)]
    for name, dim, recombine in shapes:
        for order in range(1, 5):
            model([(0, 1, recombine)], dim)
            gmsh.model.mesh.setOrder(order)
            # every format at order 2
            formats = FORMATS if order == 2 else {"41": FORMATS["41"]}
            for suffix, (version, binary) in formats.items():
                write(f"sector_{name}_{order}_{suffix}", version, binary)
    model([(0, 1, False), (1, 2, True)], 2)
    write("sector_mixed", 4.1, 0)
    groups()
    sphere()
    write("sphere_2", 4.1, 1)
    for order in (1, 2):
        solids(order)
        write(f"solids_{order}", 4.1, 0)
    gmsh.model.mesh.partition(2)
    write("solids_parts", 4.1, 1)


if __name__ == "__main__":
    main()
