"""Compilers, by lines of text: a name, a kind, and words.

    gcc-O3      c       gcc -O3 -march=native
    pocl-3.1    opencl  OCL_ICD_VENDORS=/etc/OpenCL/vendors
    nvrtc-12.0  nvrtc   /path/to/libnvrtc.so.12 --fmad=true
    ptxas-O1    ptxas   /path/to/libnvrtc.so.13 /usr/local/cuda/bin/ptxas -O1
    hip-O3      only    hip clang -x hip --offload-arch=gfx90a -O3 -c {source} -o {object}
    hip-cpu     hipcpu  /path/to/HIP-CPU g++ -O2
    nvrtc-12.3  built   folder, of what `harvest build` compiled with the compiler of that name

A word `@FILE` stands for some of the options of a file, one a line: others for each batch of pairs.
"""
import ctypes
import os
import random
import re
import subprocess
import sys
from pathlib import Path

BUILD_SECONDS = 300
C_OPTIONS = "-std=c11 -ffp-contract=fast -fopenmp-simd -fPIC -shared".split()
CUDA_OPTIONS = ["-std=c++17"]
# GCC's: vectors of 32 bytes as arguments
HIP_OPTIONS = "-std=c++17 -w -ffp-contract=fast -fPIC -shared".split()
KERNEL = re.compile(r"__global__ void __launch_bounds__\([^)]*\) (\w+)\(")


class BuildError(Exception):
    """A compiler does not compile a source."""


class Compiler:
    """One line of the text above."""

    def __init__(self, line, arch="sm_90"):
        self.name, self.kind, *self.words = line.split()
        self.arch = arch
        targets = {"c": "c", "opencl": "opencl", "only": self.words[0], "hipcpu": "hip"}
        self.target = targets.get(self.kind, "cuda")
        self.suffix = {"c": ".c", "opencl": ".cl", "cuda": ".cu", "hip": ".hip"}[self.target]
        if self.kind == "opencl":
            self.environment = dict(word.split("=", 1) for word in self.words if "=" in word and word[0] != "-")
            self.options = " ".join(word for word in self.words if word[0] == "-")

    def options_of(self, words, key):
        """Words with what is drawn of files by a key."""
        draw = random.Random(f"{self.name} {key}")
        lines = [Path(word[1:]).read_text().split("\n") if word[0] == "@" else [] for word in words]
        share = draw.choice([0.05, 0.2, 0.5])
        drawn = ([line for line in of_file if line and draw.random() < share] for of_file in lines)
        return [option for word, some in zip(words, drawn) for line in (some if word[0] == "@" else [word]) for option in line.split()]

    def build(self, source, folder, stem, key=""):
        """Compiles a source, which may share a folder with others; the file to load."""
        path = folder / f"{stem}{self.suffix}"
        if not path.exists():
            path.write_text(source)
        built = folder / f"{stem}.{self.name}"
        if self.kind == "c":
            command = [*self.options_of(self.words, key), *C_OPTIONS, str(path), "-o", str(built), "-lm"]
        elif self.kind == "hipcpu":
            command = [*self.options_of(self.words[1:], key), *HIP_OPTIONS, f"-I{self.words[0]}/include"]
            command += [str(with_launches(path)), "-o", str(built), "-lpthread"]
        elif self.kind == "opencl":
            return path
        elif self.kind == "built":
            there = Path(self.words[0]) / built.name
            if not there.exists():
                raise BuildError("not compiled")
            return there
        elif self.kind == "only":
            command = [word.format(source=path, object=built) for word in self.words[1:]]
        elif self.kind == "nvrtc":
            options = self.options_of(self.words[1:], key)
            command = nvrtc(self.words[0], f"--gpu-architecture={self.arch}", options, path, built)
        elif self.kind == "ptxas":
            ptx = folder / f"{stem}.{Path(self.words[0]).resolve().parent.name}.ptx"
            if not ptx.exists():
                virtual = f"--gpu-architecture={self.arch.replace('sm', 'compute')}"
                run(nvrtc(self.words[0], virtual, [], path, ptx))
            command = [self.words[1], f"-arch={self.arch}", *self.words[2:], str(ptx), "-o", str(built)]
        else:
            raise ValueError(f"{self.name}: no kind `{self.kind}` of compilers")
        run(command)
        return built


def with_launches(path):
    """A file that adds a function to each kernel of HIP's, which a host calls as it does those of C."""
    names = KERNEL.findall(path.read_text())
    launches = (
        f'extern "C" void {name}_launch(void **places, const int64_t *sizes) {{ on_host::launch({name}, places, sizes); }}\n'
        for name in names
    )
    file = path.with_suffix(".cc")
    file.write_text(f'#include "{Path(__file__).parent.resolve()}/hip_on_host.h"\n#include "{path}"\n{"".join(launches)}')
    return file


def nvrtc(library, architecture, words, source, built):
    """NVRTC runs in a process of its own: it may die."""
    options = [architecture, *CUDA_OPTIONS, *words]
    return [sys.executable, __file__, library, str(source), str(built), *options]


def run(command):
    """Runs a compiler; what it says where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS)
    except subprocess.TimeoutExpired:
        raise BuildError(f"no end within {BUILD_SECONDS} s") from None
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        said = [line for line in lines if "rror" in line] or lines[-3:]
        raise BuildError(f"status {done.returncode}: " + " | ".join(said[:3]))


def compile_with_nvrtc(library, source, built, *options):
    """Compiles CUDA to a file of PTX or machine code."""
    # what it needs lies next to it
    for name in sorted(Path(library).resolve().parent.glob("libnvrtc-builtins.so*")):
        ctypes.CDLL(str(name), os.RTLD_GLOBAL)
    lib = ctypes.CDLL(library)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()

    def check(code, what):
        if code:
            lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            lib.nvrtcGetProgramLog(program, log)
            sys.exit(f"error {code} of {what}: {log.value.decode(errors='replace')}")

    text = Path(source).read_bytes()
    check(lib.nvrtcCreateProgram(ctypes.byref(program), text, b"pairs.cu", 0, None, None), "nvrtcCreateProgram")
    words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    check(lib.nvrtcCompileProgram(program, len(options), words), "nvrtcCompileProgram")
    what = "PTX" if "compute_" in options[0] else "CUBIN"
    check(getattr(lib, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), "its size")
    code = ctypes.create_string_buffer(size.value)
    check(getattr(lib, f"nvrtcGet{what}")(program, code), "its code")
    Path(built).write_bytes(code.raw.rstrip(b"\0") if what == "PTX" else code.raw)


if __name__ == "__main__":
    compile_with_nvrtc(*sys.argv[1:])
