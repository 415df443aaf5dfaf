"""Forms of DOLFINx on DOLFINx's own arrays.

:func:`action` compiles a functional or a linear form, :func:`operator` the action of a bilinear
form with its Dirichlet conditions, :func:`matrix` assembles it. Degrees of freedom, positions and
numberings are read where DOLFINx keeps them (``x.array``, ``geometry.x``, ``dofmap.list``,
``geometry.dofmaps``).

    from kingpost.dolfinx import action, matrix, operator

    residual = action(F)                 # F: a linear form
    residual.assemble(b)                 # as dolfinx.fem.assemble_vector and scatter_reverse

    A = operator(a, bcs=[bc])            # a: a bilinear form
    solver.setOperators(A.petsc())       # no matrix is assembled

    B = matrix(a, bcs=[bc]).petsc()      # as dolfinx.fem.petsc.assemble_matrix; .scipy() on one process

:class:`LinearProblem` and :class:`NonlinearProblem` take the arguments of those of ``dolfinx.fem.petsc``.

DOLFINx is imported only where its functions are needed, so that this module loads without it.
"""

from __future__ import annotations

from kingpost.dolfinx.bilinear import MatrixFree, operator
from kingpost.dolfinx.linear import Action, action
from kingpost.dolfinx.matrix import Assembled, matrix
from kingpost.dolfinx.problems import LinearProblem, NonlinearProblem

__all__ = [
    "Action",
    "Assembled",
    "LinearProblem",
    "MatrixFree",
    "NonlinearProblem",
    "action",
    "matrix",
    "operator",
]
