# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyKingpost(PythonPackage):
    """A polyhedral loop-transformation engine: loop programs and variational forms to CUDA,
    OpenCL and C, by steps that are proved legal."""

    homepage = "@HOMEPAGE@"
    pypi = "kingpost/kingpost-@VERSION@.tar.gz"

    license("Apache-2.0 OR MIT")

    version("@VERSION@", sha256="@SHA256@")

    variant("forms", default=False, description="Forms of UFL")

    # isl's sources are compiled with the package, kernels for the host when a program runs
    depends_on("c", type=("build", "run"))
    depends_on("rust@@RUST@:", type="build")
    depends_on("py-maturin@1.9.4:1", type="build")
    depends_on("python@3.10:", type=("build", "run"))
    # found when a program runs
    depends_on("opencl", type="run")

    with when("+forms"):
        depends_on("py-numpy", type=("build", "run"))
        depends_on("py-fenics-ufl@2026.1:", type=("build", "run"))
        depends_on("py-fenics-basix@0.11:", type=("build", "run"))
