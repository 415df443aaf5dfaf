"""Scripts of Loopy's own tests, step by step as schedules: the same loops, tiles and results."""

import re

import numpy as np
import pytest
import kingpost

lp = pytest.importorskip("loopy")

F32 = np.float32


def axpy(n=300):
    """`test_linalg.py`, `test_axpy`, `variant_gpu`."""
    plain = lp.make_kernel(
        "[n] -> {[i]: 0<=i<n}",
        "z[i] = a*x[i]+b*y[i]",
        [lp.ValueArg("a,b", F32), lp.GlobalArg("x,y,z", F32, shape="n,"), lp.ValueArg("n", np.int32)],
        name="axpy",
        assumptions="n>=1",
    )
    loopy = lp.split_iname(plain, "i", 4*32, outer_tag="g.0")
    loopy = lp.split_iname(loopy, "i_inner", 32, outer_tag="unr", inner_tag="l.0")

    def schedule(s):
        outer, inner = s.split("i", 4*32)
        s.tag(outer, "g.0")
        unrolled, items = s.split(inner, 32)
        s.unroll(unrolled)
        s.tag(items, "l.0")

    random = np.random.default_rng(1)
    given = {"a": F32(5), "b": F32(7), "x": random.random(n, F32), "y": random.random(n, F32)}
    given["z"] = np.zeros(n, F32)
    return plain, loopy, schedule, given, {"z": 5*given["x"] + 7*given["y"]}


def transpose(n=64):
    """`test_linalg.py`, `test_transpose`."""
    plain = lp.make_kernel(
        f"{{[i,j]: 0<=i,j<{n}}}", "b[i, j] = a[j, i]", [lp.GlobalArg("a,b", F32, shape=(n, n))], name="transpose"
    )
    loopy = lp.split_iname(plain, "i", 16, outer_tag="g.0", inner_tag="l.1")
    loopy = lp.split_iname(loopy, "j", 16, outer_tag="g.1", inner_tag="l.0")
    loopy = lp.add_prefetch(loopy, "a", ["i_inner", "j_inner"], default_tag="l.auto")

    def schedule(s):
        outer = s.tile(["i", "j"], [16, 16], [("g.0", "l.1"), ("g.1", "l.0")])
        tile = s.prefetch("a", outer[1])
        s.tag(tile.loops[0], "l.1")
        s.tag(tile.loops[1], "l.0")

    a = np.random.default_rng(2).random((n, n), F32)
    return plain, loopy, schedule, {"a": a, "b": np.zeros((n, n), F32)}, {"b": a.T}


def product(n=64):
    """`test_linalg.py`, `test_plain_matrix_mul`."""
    plain = lp.make_kernel(
        f"{{[i,j,k]: 0<=i,j,k<{n}}}",
        "c[i, j] = sum(k, a[i, k]*b[k, j])",
        [lp.GlobalArg("a,b,c", F32, shape=(n, n))],
        name="matmul",
    )
    loopy = lp.split_iname(plain, "i", 16, outer_tag="g.0", inner_tag="l.1")
    loopy = lp.split_iname(loopy, "j", 16, outer_tag="g.1", inner_tag="l.0")
    loopy = lp.split_iname(loopy, "k", 16)
    outer = frozenset(["i_outer", "j_outer", "k_outer"])
    loopy = lp.add_prefetch(loopy, "a", ["k_inner", "i_inner"], fetch_outer_inames=outer, default_tag="l.auto")
    loopy = lp.add_prefetch(loopy, "b", ["j_inner", "k_inner"], fetch_outer_inames=outer, default_tag="l.auto")

    def schedule(s):
        total = s.realise("k").arrays[0]
        (i_o, i_i), (j_o, j_i), (k_o, _) = (s.split(loop, 16) for loop in "ijk")
        s.interchange_inames(i_i, j_o)
        s.expand(total, i_i, j_i)
        j_sum, j_store = s.distribute(j_i, k_o, "insn").loops
        i_sum, i_store = s.distribute(i_i, j_sum, j_store).loops
        s.interchange_inames(j_sum, k_o)
        s.interchange_inames(i_sum, k_o)
        a, b = s.prefetch("a", k_o), s.prefetch("b", k_o)
        s.tag(i_o, "g.0")
        s.tag(j_o, "g.1")
        s.tag([i_i, i_sum, i_store, a.loops[0], b.loops[0]], "l.1")
        s.tag([j_i, j_sum, j_store, a.loops[1], b.loops[1]], "l.0")

    random = np.random.default_rng(3)
    a, b = random.random((n, n), F32), random.random((n, n), F32)
    return plain, loopy, schedule, {"a": a, "b": b, "c": np.zeros((n, n), F32)}, {"c": a @ b}


def stencil(n=64):
    """`test_apps.py`, `test_stencil`, `variant_2`."""
    plain = lp.make_kernel(
        f"{{[i,j]: 0<=i,j<{n}}}",
        [
            "a_offset(ii, jj) := a[ii+1, jj+1]",
            "z[i,j] = -2*a_offset(i,j) + a_offset(i,j-1) + a_offset(i,j+1) + a_offset(i-1,j) + a_offset(i+1,j)",
        ],
        [lp.GlobalArg("a,z", F32, shape=(n + 2, n + 2))],
    )
    loopy = lp.split_iname(plain, "i", 16, outer_tag="g.1", inner_tag="l.1")
    loopy = lp.split_iname(loopy, "j", 16, outer_tag="g.0", inner_tag="l.0")
    loopy = lp.add_prefetch(loopy, "a", ["i_inner", "j_inner"], fetch_bounding_box=True, default_tag="l.auto")

    def schedule(s):
        outer = s.tile(["i", "j"], [16, 16], [("g.1", "l.1"), ("g.0", "l.0")])
        tile = s.prefetch("a", outer[1])
        for loop, axis in zip(tile.loops, ("l.1", "l.0")):
            rows, items = s.split(loop, 16)
            s.tag(items, axis)

    a = np.random.default_rng(4).random((n + 2, n + 2), F32)
    z = np.zeros((n + 2, n + 2), F32)
    inner = -2*a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]
    return plain, loopy, schedule, {"a": a, "z": z}, {"z": np.pad(inner, ((0, 2), (0, 2)))}


def bodies(n=100):
    """`test_nbody.py`, `test_nbody`, `variant_gpu`."""
    plain = lp.make_kernel(
        "[N] -> {[i,j,k]: 0<=i,j<N and 0<=k<3 }",
        [
            "axdist(k) := x[i,k]-x[j,k]",
            "invdist := rsqrt(sum(k, axdist(k)**2))",
            "pot[i] = sum(j, if(i != j, invdist, 0))",
        ],
        [lp.GlobalArg("x", F32, shape="N,3"), lp.GlobalArg("pot", F32, shape="N"), lp.ValueArg("N", np.int32)],
        name="nbody",
        assumptions="N>=1",
    )
    loopy = lp.split_iname(lp.expand_subst(plain), "i", 32, outer_tag="g.0", inner_tag="l.0")
    loopy = lp.split_iname(loopy, "j", 32)
    names = ["x_fetch_j", "x_fetch_k"]
    outer = "i_outer, j_outer"
    loopy = lp.add_prefetch(loopy, "x[j,k]", ["j_inner", "k"], names, fetch_outer_inames=outer, default_tag=None)
    loopy = lp.tag_inames(loopy, {"x_fetch_k": "unr", "x_fetch_j": "l.0"})
    loopy = lp.add_prefetch(loopy, "x[i,k]", ["k"], default_tag=None)
    loopy = lp.prioritize_loops(loopy, ["j_outer", "j_inner"])

    def schedule(s):
        total = s.realise("j").arrays[0]
        (i_o, i_i), (j_o, j_i) = (s.split(loop, 32) for loop in "ij")
        own = s.prefetch("x", i_i, "private", only=[f"x[32*{i_o} + {i_i}, k]"]).arrays[0]
        s.expand(total, i_i)
        s.expand(own, i_i)
        i_sum, i_store = s.distribute(i_i, j_o, "insn").loops
        s.interchange_inames(i_sum, j_o)
        tile = s.prefetch("x", j_o)
        s.tag(i_o, "g.0")
        s.tag([i_i, i_sum, i_store, tile.loops[0]], "l.0")
        s.unroll(tile.loops[1])

    x = np.random.default_rng(5).random((n, 3), F32)
    squares = ((x[:, None, :].astype(float) - x[None, :, :])**2).sum(axis=2) + np.diag(np.full(n, np.inf))
    pot = (1/np.sqrt(squares)).sum(axis=1)
    return plain, loopy, schedule, {"x": x, "pot": np.zeros(n, F32)}, {"pot": pot}


def tiles(kernel):
    """The shapes of local arrays, and the axes that loops are on."""
    text = str(kernel)
    axes = re.findall(r"\{([gl]\.\d)\}", text)
    return sorted(re.findall(r": (f32\[.*\]) local", text)), sorted(axes)


SCRIPTS = [axpy, transpose, product, stencil, bodies]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_scripts_of_loopy_are_schedules(script):
    plain, loopy, schedule, given, wanted = script()
    proof = kingpost.prove_loopy(loopy)
    assert proof, str(proof)
    steps = kingpost.Schedule(kingpost.from_loopy(plain).kernel)
    schedule(steps)
    assert tiles(steps.kernel) == tiles(proof.imported.kernel)
    for device in sorted({"c", "opencl"} & set(kingpost.devices())):
        for kernel in (steps.kernel, proof.imported.kernel):
            values = {name: value.copy() for name, value in given.items()}
            kingpost.compile(kernel, device)(**values)
            for name, value in wanted.items():
                # sums of 100 terms in single precision
                np.testing.assert_allclose(values[name], value, rtol=2e-5, err_msg=f"{name} on {device}")
