"""Times DOLFINx's assembly of Poisson's matrix on the unit cube, for a comparison.

The matrix is assembled again over what is there, by two processes if MPI starts two. PETSc's matrix
(`--matrix petsc`) and DOLFINx's own (`--matrix dolfinx`) are timed; the wall time of the slowest process
counts. Prints a line of JSON. `scripts/dolfinx_assembly.sh` runs it in turns with Kingpost.

    scripts/dolfinx-tests.sh    # installs DOLFINx once
    LD_LIBRARY_PATH=.venv-dolfinx/lib .venv-dolfinx/bin/mpiexec -n 2 \\
        .venv-dolfinx/bin/python scripts/dolfinx_assembly.py --divisions 60
"""
import argparse
import json
import statistics
import time

import dolfinx
import ufl
from dolfinx import fem, mesh
from dolfinx.fem import petsc
from mpi4py import MPI

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--divisions", type=int, default=60)
parser.add_argument("--degree", type=int, default=1)
parser.add_argument("--matrix", choices=["petsc", "dolfinx"], default="petsc")
parser.add_argument("--runs", type=int, default=9)
args = parser.parse_args()

comm = MPI.COMM_WORLD
domain = mesh.create_unit_cube(comm, args.divisions, args.divisions, args.divisions)
space = fem.functionspace(domain, ("Lagrange", args.degree))
u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
options = {"cffi_extra_compile_args": ["-O3", "-march=native"]}
form = fem.form(ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, jit_options=options)

if args.matrix == "petsc":
    matrix = petsc.create_matrix(form)

    def assemble():
        matrix.zeroEntries()
        petsc.assemble_matrix(matrix, form)
        matrix.assemble()
else:
    matrix = fem.create_matrix(form)

    def assemble():
        matrix.set_value(0.0)
        fem.assemble_matrix(matrix, form)
        matrix.scatter_reverse()


times = []
for run in range(args.runs + 2):
    comm.barrier()
    start = time.perf_counter()
    assemble()
    taken = comm.allreduce(time.perf_counter() - start, op=MPI.MAX)
    if run >= 2:
        times.append(taken)
if comm.rank == 0:
    unknowns = space.dofmap.index_map.size_global
    print(json.dumps({
        "divisions": args.divisions, "degree": args.degree, "unknowns": unknowns, "matrix": args.matrix,
        "processes": comm.size, "dolfinx": dolfinx.__version__, "median_s": statistics.median(times),
        "min_s": min(times), "max_s": max(times), "mdof_s": unknowns / statistics.median(times) * 1e-6,
    }))
