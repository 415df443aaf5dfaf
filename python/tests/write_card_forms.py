"""Forms of UFL from Python on a card: the table of results/h200/ufl_python.md.

    python write_card_forms.py export FOLDER   # where UFL is: the forms as JSON
    python write_card_forms.py FOLDER [WINDOW ...]  # on a card, with PyTorch: the table
    python write_card_forms.py dolfinx MESH.npz DIVISIONS  # where DOLFINx is: a cube as DOLFINx numbers it
    python write_card_forms.py FOLDER MESH.npz [WINDOW ...]  # on a card: the same forms of degree 2 there

Each row is the median of seven batches of 60 bound calls by events of the card, on the unit cube in tetrahedra with
deformed positions; results are compared with the first row of the form. Cells come cube by cube, or in the order of
`kingpost.order_cells`.
"""

import itertools
import json
import sys
from pathlib import Path

import numpy as np

FORMS = {"laplace_p2": 56, "laplace_p3": 40, "laplace_p4": 40, "mass_p2": 56, "mass_p4": 40}  # divisions of a side

def export(folder):
    import ufl
    from basix.ufl import element
    from kingpost.export import dumps, export_form

    for name, scalar in itertools.product(FORMS, ("f64", "f32")):
        kind, degree = name.split("_p")
        mesh = ufl.Mesh(element("P", "tetrahedron", 1, shape=(3,)))
        space = ufl.FunctionSpace(mesh, element("P", "tetrahedron", int(degree)))
        u, v = ufl.Coefficient(space), ufl.TestFunction(space)
        form = (ufl.inner(ufl.grad(u), ufl.grad(v)) if kind == "laplace" else u * v) * ufl.dx
        text = dumps(export_form(form, name=name, scalar=scalar, names={id(u): "u"}))
        (folder / f"{name}_{scalar}.json").write_text(text)


def cube(n):
    """Lattice points, deformed positions, and the vertices of six tetrahedra a cube."""
    axis = np.arange(n + 1)
    lattice = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    i, j, k = np.meshgrid(*[np.arange(n)] * 3, indexing="ij")
    cells = []
    for order in itertools.permutations(range(3)):
        corner, vertices = [0, 0, 0], []
        for step in (None, *order):
            if step is not None:
                corner[step] = 1
            a, b, c = corner
            vertices.append(((i + a) * (n + 1) + j + b) * (n + 1) + k + c)
        cells.append(np.stack(vertices, -1))
    x = lattice / n
    x = x + 0.02 * np.sin(3 * x[:, [1, 2, 0]])
    return lattice, x, np.stack(cells, -2).reshape(-1, 4).astype(np.int32)


def numbering(lattice, cells, nodes):
    """The map of a space by its nodes, in the order in which cells come."""
    nodes = np.array(nodes)
    weights = np.concatenate([1 - nodes.sum(1, keepdims=True), nodes], 1)
    key = np.zeros((len(cells), len(nodes)), np.int64)
    for axis in range(3):
        key = key * 4_000_003 + np.rint(lattice[cells][:, :, axis] @ weights.T * 1e4).astype(np.int64)
    _, first, inverse = np.unique(key.ravel(), return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse.reshape(key.shape)].astype(np.int32)


def dolfinx_cube(path, divisions):
    import dolfinx_solver  # noqa: F401 (loads MPI before the bindings)
    from dolfinx import fem, mesh
    from mpi4py import MPI

    made = mesh.create_unit_cube(MPI.COMM_SELF, *[divisions] * 3)
    x = made.geometry.x + 0.02 * np.sin(3 * made.geometry.x[:, [1, 2, 0]])
    p2 = fem.functionspace(made, ("P", 2)).dofmap.list
    np.savez_compressed(path, x=x, x_dofs=made.geometry.dofmaps[0], p2_dofs=p2)


def timed(call):
    """Microseconds of a call, by events of the card."""
    import torch

    times = []
    for batch in range(8):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(60):
            call()
        end.record()
        torch.cuda.synchronize()
        if batch:
            times.append(start.elapsed_time(end) / 60 * 1e3)
    return sorted(times)[3]


def table_of_dolfinx(folder, path, windows):
    import kingpost
    import torch

    mesh = np.load(path)
    print("| form | cells | type | cells in order | µs | largest difference |")
    print("|---|--:|---|---|--:|--:|")
    for name, scalar in itertools.product((name for name in FORMS if name.endswith("p2")), ("f64", "f32")):
        op, expected = kingpost.jit(str(folder / f"{name}_{scalar}.json"), "cuda"), None
        kind = torch.float64 if scalar == "f64" else torch.float32
        values = np.sin(0.37 * np.arange(mesh["p2_dofs"].max() + 1))
        for window in (None, *windows):
            places = slice(None) if window is None else kingpost.order_cells(mesh["x_dofs"], window)
            given = {"u": values, "x": mesh["x"], "x_dofs": mesh["x_dofs"][places], "p2_dofs": mesh["p2_dofs"][places]}
            given = {k: torch.from_numpy(np.ascontiguousarray(v)).cuda() for k, v in given.items()}
            given = {k: v.to(kind) if v.is_floating_point() else v for k, v in given.items()}
            y = torch.zeros(len(values), dtype=kind, device="cuda")
            op(y, **given)
            found = y.double().cpu().numpy()
            expected = found if expected is None else expected
            difference = abs(found - expected).max() / abs(expected).max()
            ordered = "no" if window is None else f"windows of {window}"
            row = f"| {name} | {len(mesh['x_dofs'])} | {scalar} | {ordered} | {timed(op.bind(y, **given)):.1f} |"
            print(f"{row} {difference:.0e} |", flush=True)


def table(folder, windows):
    import kingpost
    import torch

    print("| form | cells | type | numbers by dimension | cells in order | µs | largest difference | mapping |")
    print("|---|--:|---|---|---|--:|--:|---|")
    for name, divisions in FORMS.items():
        lattice, x, cells = cube(divisions)
        space = json.loads((folder / f"{name}_f64.json").read_text())["spaces"][1]
        dofs, expected = numbering(lattice, cells, space["nodes"]), None
        values = np.sin(0.37 * np.arange(dofs.max() + 1))
        for scalar, by_dimension, window in itertools.product(("f64", "f32"), (False, True), (None, *windows)):
            kind = torch.float64 if scalar == "f64" else torch.float32
            op = kingpost.jit(str(folder / f"{name}_{scalar}.json"), "cuda", by_dimension=by_dimension)
            places = slice(None) if window is None else kingpost.order_cells(cells, window)
            own, order = dofs[places], np.arange(len(values))
            if by_dimension:
                own, order = kingpost.number_by_dimension(own, op.entity_parts)
            given = {"u": values[order], "x": x, "x_dofs": cells[places], f"{space['name']}_dofs": own}
            given = {k: torch.from_numpy(np.ascontiguousarray(v)).cuda() for k, v in given.items()}
            given = {k: v.to(kind) if v.is_floating_point() else v for k, v in given.items()}
            y = torch.zeros(len(values), dtype=kind, device="cuda")
            op(y, **given)
            found = np.empty(len(values))
            found[order] = y.double().cpu().numpy()
            expected = found if expected is None else expected
            difference = abs(found - expected).max() / abs(expected).max()
            words = op.mapping_reason.split(" (the best")[0]
            yes = "yes" if by_dimension else "no"
            ordered = "no" if window is None else f"windows of {window}"
            time = timed(op.bind(y, **given))
            row = f"| {name} | {len(cells)} | {scalar} | {yes} | {ordered} | {time:.1f} | {difference:.0e} | {words} |"
            print(row, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "export":
        export(Path(sys.argv[2]))
    elif sys.argv[1] == "dolfinx":
        dolfinx_cube(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[2:] and sys.argv[2].endswith(".npz"):
        table_of_dolfinx(Path(sys.argv[1]), sys.argv[2], [int(window) for window in sys.argv[3:]] or [64])
    else:
        table(Path(sys.argv[1]), [int(window) for window in sys.argv[2:]] or [64])
