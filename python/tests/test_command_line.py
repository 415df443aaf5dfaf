"""The command line that the wheel brings, and where libraries are looked for."""

import os
import subprocess
import sys
from pathlib import Path

import kingpost
import pytest

KINGPOST = Path(sys.executable).with_name("kingpost")


def ran(*arguments, **environment):
    return subprocess.run(
        [KINGPOST, *arguments], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )


def test_the_command_line_is_there():
    result = ran("--version")
    assert result.returncode == 0 and result.stdout.split() == ["kingpost", kingpost.__version__]
    result = ran("print", "mass", "--dim", "2", "--target", "c")
    assert result.returncode == 0 and "void" in result.stdout, result.stderr


def test_mistakes_have_their_exit_codes():
    assert ran("print", "nothing").returncode == 2
    assert ran("--unknown").returncode == 2
    missing = ran("run", "mass", "--dim", "2", "--device", "c", "--no-time", CC="/nowhere/cc")
    assert missing.returncode == 3 and "install" in missing.stderr


SCRIPT = """
import numpy, kingpost
run = kingpost.compile("kernel k\\nparam n: i32\\narg y: f64[n] inout\\n\\nfor i in 0..n\\n  y[i] = 2.0\\n")
y = numpy.zeros(3)
run(y=y)
assert (y == 2).all()
print(run.device)
"""


def test_opencl_is_the_default_where_there_is_no_c_compiler():
    assert kingpost.compile("kernel k\narg y: f64[1] inout\n\ny[0] = 1.0\n").device == "c"
    if not any(name.startswith("opencl") for name in kingpost.devices()):
        pytest.skip("there is no OpenCL device")
    environment = {**os.environ, "CC": "/nowhere/cc"}
    result = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)
    assert result.stdout.strip().startswith("opencl"), result.stderr


def test_libraries_of_this_environment_are_found(tmp_path):
    """Intel's device is looked for where pip puts it; this one is no library."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libintelocl.so").touch()
    script = (
        "import sys; sys.prefix = sys.argv[1]; from kingpost import _environment; "
        "sys.argv = ['kingpost', 'devices']; _environment.command_line()"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OCL_ICD_VENDORS"}
    result = subprocess.run(
        [sys.executable, "-c", script, tmp_path], capture_output=True, text=True, env=environment
    )
    assert f"{tmp_path / 'lib' / 'libintelocl.so'}` does not load" in result.stdout, result
