#!/usr/bin/env python3
"""Writes crates/codegen/src/names/words.txt: every word that means something to a target's compiler.

usage: scripts/reserved_words.py > crates/codegen/src/names/words.txt

The words come from what is installed: the C headers through `cc`, clang's and pocl's headers of OpenCL C, and the
headers inside NVRTC's library of built-ins (scripts/cuda-wheels.sh). Words with a leading underscore are left out:
no generated name has one. A name too many costs a suffix, a name too few a kernel that does not compile; so macros,
functions, types and enumerators all count, whether or not a kernel could shadow them. Words of HIP come from its
headers (scripts/amd-compiler.sh), without the families that `names.rs` knows.
"""

import ctypes
import glob
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Keywords of C23, C++23 and OpenCL C, and what OpenCL C 1.2, 6.1.4 reserves.
KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
co_return co_yield compl complex concept const const_cast consteval constexpr constinit constant continue decltype
default delete do double dynamic_cast else enum explicit export extern false float for friend generic global goto half
if imaginary import inline int kernel local long module mutable namespace new noexcept not not_eq nullptr operator or
or_eq pipe private protected public quad read_only read_write register reinterpret_cast requires restrict return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid
typename typeof typeof_unqual uniform union unsigned using virtual void volatile wchar_t while write_only xor xor_eq
event_t image1d_array_t image1d_buffer_t image1d_t image2d_array_t image2d_t image3d_t sampler_t queue_t clk_event_t
reserve_id_t linux unix i386 std nv main
""".split()

# Names of the printers around a user's.
PRINTED = ["args", "grid", "local_memory"]

# What is in scope of every CUDA source without a header.
CUDA = """
blockDim blockIdx gridDim threadIdx warpSize dim3 clock_t ptrdiff_t nullptr_t cudaError_t cudaStream_t cooperative_groups
""".split()

WIDTHS = ["1", "2", "3", "4", "8", "16"]
ELEMENTS = "char uchar short ushort int uint long ulong longlong ulonglong float double half bool quad".split()


def preprocessed(*arguments, includes):
    source = "".join(f"#include <{name}>\n" for name in includes)
    command = ["cc", "-xc", "-fopenmp", "-E", *arguments, "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def of_c():
    words = set()
    # the headers of the printed source, with all that a library may add to them
    printed = ["math.h", "stdint.h", "limits.h", "float.h", "stddef.h"]
    # functions that compilers know and call without a declaration
    standard = ["stdlib.h", "string.h", "stdio.h"]
    for headers, modes in [(printed, ["-std=c11", "-std=gnu17", "-D_GNU_SOURCE"]), (standard, ["-std=c11"])]:
        for mode in modes:
            macros = preprocessed("-dM", mode, includes=headers)
            words.update(re.findall(r"^#define (\w+)", macros, re.M))
            words.update(re.findall(r"\b[A-Za-z_]\w*", re.sub(r'"[^"]*"|^#.*', "", preprocessed("-P", mode, includes=headers), flags=re.M)))
    return words


def without_members(code):
    """The code without the bodies of structures and classes: members are in no scope of ours."""
    out, at = [], 0
    for head in re.finditer(r"\b(?:struct|union|class)\b[^;{}()]*\{", code):
        if head.start() < at:
            continue
        out.append(code[at : head.end()])
        depth, at = 1, head.end()
        while depth and at < len(code):
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        out.append("}")
    return "".join(out) + code[at:]


def of_header(text):
    """Macros, functions, types and enumerators of a header's text, before preprocessing."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    words = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M))
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", " ", text, flags=re.M)
    words.update(re.findall(r"\b(?:struct|union|enum|class)\s+([A-Za-z_]\w*)", code))
    code = without_members(code)
    words.update(re.findall(r"\b([A-Za-z_]\w*)\s*\(", code))
    words.update(re.findall(r"\btypedef\b[^;{}]*?\b([A-Za-z_]\w*)\s*;", code))
    words.update(re.findall(r"\}\s*([A-Za-z_]\w*)\s*;", code))
    for body in re.findall(r"\benum\b[^;{}]*\{([^}]*)\}", code):
        words.update(re.findall(r"\b([A-Za-z_]\w*)\b", body))
    return words


def of_opencl():
    clang = glob.glob("/usr/lib/llvm-*/lib/clang/*/include/opencl-c*.h")
    # pocl's headers that start with an underscore are those of kernels; the others are its own.
    files = sorted(clang + glob.glob("/usr/share/pocl/include/_*.h"))
    if not files:
        sys.exit("no headers of OpenCL C; install clang and pocl (scripts/install-system-packages.sh)")
    return set().union(*(of_header(pathlib.Path(file).read_text(errors="replace")) for file in files))


def of_cuda():
    found = sorted(glob.glob(f"{ROOT}/.venv/lib/python3*/site-packages/nvidia/*/lib/libnvrtc-builtins.so*"))
    if not found:
        sys.exit("no NVRTC in .venv; run scripts/cuda-wheels.sh")
    builtins = pathlib.Path(found[-1])
    library = builtins.with_name("libnvrtc.so.13")
    # Headers are one file, what the compiler itself knows are strings of the other.
    candidates = set()
    for file in [builtins, library]:
        candidates.update(word.decode() for word in re.findall(rb"(?<!\w)[A-Za-z]\w+(?!\w)", file.read_bytes()))
    ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(library))
    # NVRTC stops at 100 errors.
    words = sorted(candidates)
    batches = (words[k : k + 90] for k in range(0, len(words), 90))
    return set().union(*(known_to_nvrtc(nvrtc, batch) for batch in batches))


def known_to_nvrtc(nvrtc, words):
    """The words that are macros, or names at global scope, of a CUDA source that includes nothing."""
    lines = [f"namespace p {{\n#ifndef {w}\n#line {k}\nusing ::{w};\n#endif\n}}" for k, w in enumerate(words, 1)]
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    source = "\n".join(lines).encode()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"words.cu", 0, None, None)
    nvrtc.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(b"--std=c++17"))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    unknown = {int(k) for k in re.findall(r"words\.cu\((\d+)\): error", log.value.decode())}
    return {w for k, w in enumerate(words, 1) if k not in unknown}


def of_hip():
    """Macros, and names at global scope, of a source of HIP that includes its header."""
    amd = f"{ROOT}/target/amd"
    command = [f"{amd}/llvm/bin/clang", f"--rocm-path={amd}", "-x", "hip", "--offload-arch=gfx942", "--cuda-device-only"]
    header = "#include <hip/hip_runtime.h>\n"

    def clang(*arguments, source=header):
        return subprocess.run([*command, *arguments, "-"], input=source, capture_output=True, text=True)

    words = set(re.findall(r"^#define (\w+)", clang("-E", "-dM").stdout, re.M))
    text = re.sub(r'"[^"]*"|^#.*', "", clang("-E", "-P").stdout, flags=re.M)
    named = sorted(set(re.findall(r"\b[A-Za-z]\w+", text)) - words)
    if not named:
        sys.exit("no headers of HIP; run scripts/amd-compiler.sh")
    lines = [f"namespace p {{ using ::{word}; }}" for word in named]
    source = header + '#line 1 "words"\n' + "\n".join(lines)
    log = clang("-fsyntax-only", "-ferror-limit=0", source=source).stderr
    unknown = {int(k) for k in re.findall(r"^words:(\d+):\d+: error", log, re.M)}
    words.update(word for k, word in enumerate(named, 1) if k not in unknown)
    return {word for word in words if not re.match(r"hip[A-Z]|HIP_", word)}


def main():
    words = of_c() | of_opencl() | of_cuda() | of_hip() | set(KEYWORDS) | set(PRINTED) | set(CUDA)
    for element in ELEMENTS:
        words.update(f"{element}{width}" for width in WIDTHS)
        words.update(f"make_{element}{width}" for width in WIDTHS)
    words = sorted(word for word in words if len(word) > 1 and not word.startswith("_"))
    print("\n".join(words))


main()
