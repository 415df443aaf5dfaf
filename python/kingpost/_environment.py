"""Where pip puts libraries of OpenCL and CUDA, and the command line `kingpost`."""

from __future__ import annotations

import signal
import site
import sys
import sysconfig
from typing import NoReturn

from kingpost import _kingpost


def search() -> None:
    """Tells the engine of the folders of this Python: packages such as `intel-opencl-rt` and `nvidia-cuda-nvrtc`
    hold what it loads at run time."""
    folders = [sys.prefix, sysconfig.get_path("purelib"), site.getuserbase()]
    for folder in folders:
        _kingpost.search_in(folder)


def command_line() -> NoReturn:
    """The command line `kingpost`."""
    # as of any program: Python would raise an exception once the engine returns
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_kingpost.command_line(sys.argv))
