"""The stream that a call is put on, by a driver without a card and, where there is one, by the libraries themselves."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kingpost
from test_compile import scheduled

HERE = Path(__file__).parent
HAS_CARD = any(name.startswith("cuda") for name in kingpost.devices())


def test_streams_of_libraries_on_a_driver_without_a_card(tmp_path):
    if HAS_CARD:
        pytest.skip("skipped: a card is here, whose driver the engine has loaded")
    if shutil.which("cc") is None:
        pytest.skip("skipped: no C compiler")
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, HERE / "fake_cuda.c"], check=True)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "KINGPOST_CACHE_DIR": str(tmp_path / "cache")}
    environment["KINGPOST_CUDA_WHEELS"] = os.pathsep.join([sys.prefix, os.environ.get("KINGPOST_CUDA_WHEELS", "")]).rstrip(os.pathsep)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", HERE / "on_fake_card.py"]
    ran = subprocess.run(command, env=environment, cwd=HERE, capture_output=True, text=True)
    if "NVRTC" in ran.stdout and ran.returncode:
        pytest.skip("skipped: no NVRTC (scripts/cuda-wheels.sh)")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def delay(on_card):
    """Work on the current stream of PyTorch that ends late."""
    for _ in range(40):
        on_card = on_card @ on_card * 1e-4
    return on_card


@pytest.mark.skipif(not HAS_CARD, reason="skipped: no CUDA device")
@pytest.mark.parametrize("kept", [False, True])
def test_a_side_stream_of_pytorch(kept):
    torch = pytest.importorskip("torch", reason="skipped: PyTorch is not installed")
    axpy, side = scheduled("cuda"), torch.cuda.Stream()
    x, y = (torch.zeros(1000, dtype=torch.float64, device="cuda") for _ in range(2))
    big = torch.rand(2000, 2000, dtype=torch.float64, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        for _ in range(3 if kept else 1):
            x.zero_()
            y.zero_()
            x += delay(big)[0, 0] * 0 + 2.0  # late
            axpy(3.0, x, y)
            y += 1.0
    side.synchronize()
    assert y.cpu().eq(7.0).all()
    # on a stream that is named, after what the current one does
    other = torch.cuda.Stream()
    x += delay(big)[0, 0] * 0 + 1.0
    axpy(3.0, x, y, stream=other)
    other.synchronize()
    assert y.cpu().eq(16.0).all()


@pytest.mark.skipif(not HAS_CARD, reason="skipped: no CUDA device")
@pytest.mark.parametrize("kept", [False, True])
def test_a_side_stream_of_cupy(kept):
    cupy = pytest.importorskip("cupy", reason="skipped: CuPy is not installed")
    axpy, side = scheduled("cuda"), cupy.cuda.Stream(non_blocking=True)
    x, y, big = cupy.zeros(1000), cupy.zeros(1000), cupy.ones((2000, 2000))
    cupy.cuda.Device().synchronize()
    with side:
        for _ in range(3 if kept else 1):
            x[:] = 0.0
            y[:] = 0.0
            late = big
            for _ in range(40):
                late = late @ big * 1e-4
            x += late[0, 0] * 0 + 2.0
            axpy(3.0, x, y)
            y += 1.0
    side.synchronize()
    assert (cupy.asnumpy(y) == 7.0).all()


@pytest.mark.skipif(not HAS_CARD, reason="skipped: no CUDA device")
def test_arrays_of_jax_that_are_still_computed():
    jax = pytest.importorskip("jax", reason="skipped: JAX is not installed")
    torch = pytest.importorskip("torch", reason="skipped: PyTorch is not installed")
    jax.config.update("jax_enable_x64", True)
    if jax.default_backend() != "gpu":
        pytest.skip("skipped: JAX has no card")
    axpy, big = scheduled("cuda"), jax.numpy.ones((2000, 2000))
    y = torch.zeros(1000, dtype=torch.float64, device="cuda")
    for k in range(3):
        late = big
        for _ in range(20):
            late = late @ big * 1e-4
        axpy(3.0, late[0, :1000] * 0 + 2.0, y)
    assert np.array_equal(y.cpu().numpy(), np.full(1000, 18.0))
