"""Forms on meshes of files and arrays: curves, surfaces and solids, of cells of one or of several kinds.

    from kingpost import meshes

    mesh = meshes.read("part.msh")                  # Gmsh; VTU, XDMF and others through meshio
    V = mesh.space("P", 2)                          # on all kinds of cells, continuous across them
    u = V.function()                                # u.array: its degrees of freedom

    def energy(kind):                               # a form of UFL, for each kind of cells
        w = u.on(kind)
        return ufl.inner(ufl.grad(w), ufl.grad(w)) * ufl.dx

    meshes.action(mesh, energy).value()

:func:`action` compiles functionals and linear forms, :func:`matrix` bilinear ones, :func:`diagonal` their diagonals: a kernel for each kind of cells,
over arrays that all of them share. Groups of the file are subdomains by their numbers, ``dx(3)`` and ``ds(4)``;
:attr:`Mesh.names` has those that are named. Needs UFL, basix and NumPy; meshio for other files than Gmsh's, and SciPy
for matrices.
"""

from __future__ import annotations

from kingpost.meshes.files import from_meshio, read, write
from kingpost.meshes.forms import Action, Matrix, action, diagonal, matrix
from kingpost.meshes.mesh import Cells, Mesh
from kingpost.meshes.space import Constant, Function, Space

__all__ = [
    "Action",
    "Cells",
    "Constant",
    "Function",
    "Matrix",
    "Mesh",
    "Space",
    "action",
    "diagonal",
    "from_meshio",
    "matrix",
    "read",
    "write",
]
