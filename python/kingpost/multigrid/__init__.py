"""Geometric multigrid for Lagrange elements on meshes that were refined.

    from kingpost import meshes, multigrid

    V = meshes.read("part.msh").refined(3).space("P", 2)

    def form(V):                                    # on the space of any level
        u, v = ufl.TrialFunction(V.on()), ufl.TestFunction(V.on())
        return ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx

    solver = multigrid.Multigrid(V, form, fixed=lambda V: V.dofs_on(inlet))
    solver.solve(b)                                 # conjugate gradients

Nothing but the matrix of the coarsest level is assembled: :class:`Multigrid` applies the form. :class:`SaddlePoint` takes
it for the velocity of Stokes' equations, and
:class:`TwoLevels` is for several devices. Needs UFL, basix, NumPy and SciPy.
"""

from __future__ import annotations

from kingpost.multigrid.cycle import Multigrid
from kingpost.multigrid.divided import TwoLevels, interpolation
from kingpost.multigrid.saddle import SaddlePoint, SaddleSolution
from kingpost.multigrid.transfer import Transfer

__all__ = ["Multigrid", "SaddlePoint", "SaddleSolution", "Transfer", "TwoLevels", "interpolation"]
