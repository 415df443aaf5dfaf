//! The measuring programs, written by hand for each target.

use crate::device::{Backend, DeviceInfo};
use kingpost_codegen::{ArgKind, ArgSpec, BufferAccess, Feature, HostExpr, LaunchPlan, Program, Target};
use kingpost_ir::ScalarType;

/// Elements that one group of [`triads`] and [`sums`] handles.
const CHUNK: i64 = 1024;

/// Arrays of the stream measurement are multiples of this many bytes.
pub(crate) const STREAM_CHUNK_BYTES: u64 = 8 * CHUNK as u64;

/// A program that runs `iterations` of something countable in each work-item.
pub(crate) struct Variant {
    pub(crate) program: Program,
    pub(crate) groups: u64,
    pub(crate) iterations: u64,
}

fn arg(name: &str, ty: ScalarType, kind: ArgKind) -> ArgSpec {
    ArgSpec { name: name.into(), ty, kind, aligned: ty.bytes() }
}

fn buffer(name: &str, len: HostExpr, access: BufferAccess) -> ArgSpec {
    arg(name, ScalarType::F64, ArgKind::Buffer { len, access })
}

fn program(
    target: Target,
    entry: &str,
    source: String,
    args: Vec<ArgSpec>,
    grid: HostExpr,
    block: u64,
) -> Program {
    let plan = LaunchPlan {
        args,
        grid: [grid, HostExpr::Const(1), HostExpr::Const(1)],
        block: [block, 1, 1],
        local_bytes: 0,
        dynamic_local_bytes: 0,
        maps: Vec::new(),
        private_bytes: 0,
        features: vec![Feature::Fp64],
        preconditions: vec![],
        defined: vec![],
        notes: vec![],
    };
    Program {
        target,
        entry: entry.into(),
        source,
        plan,
        contraction: true,
        repeated_writes: true,
        untrusted: vec![],
        launches: None,
    }
}

/// `n / CHUNK`.
fn chunks() -> HostExpr {
    HostExpr::FloorDiv(Box::new(HostExpr::Param("n".into())), Box::new(HostExpr::Const(CHUNK)))
}

/// Programs for `a[i] = b[i] + s*c[i]`, i in 0..n, n a multiple of 1024; the fastest counts.
pub(crate) fn triads(backend: Backend) -> Vec<Program> {
    let target = backend.target();
    match backend {
        Backend::C => vec![triad(target, TRIAD_C.into(), 1)],
        Backend::OpenCl => {
            vec![
                triad(target, format!("{FP64}{TRIAD_OPENCL}"), 64),
                triad(target, format!("{FP64}{TRIAD_WIDE}"), 1),
            ]
        }
        Backend::Cuda => vec![triad(target, TRIAD_CUDA.into(), 64)],
    }
}

fn triad(target: Target, source: String, block: u64) -> Program {
    let n = || HostExpr::Param("n".into());
    let args = vec![
        arg("n", ScalarType::I64, ArgKind::Param),
        arg("s", ScalarType::F64, ArgKind::Scalar),
        buffer("a", n(), BufferAccess::Out),
        buffer("b", n(), BufferAccess::In),
        buffer("c", n(), BufferAccess::In),
    ];
    program(target, "triad", source, args, chunks(), block)
}

/// Programs that sum `x` in pieces, every element read once; n a multiple of 1024; the fastest
/// counts.
pub(crate) fn sums(backend: Backend) -> Vec<Program> {
    let target = backend.target();
    match backend {
        Backend::C => vec![sum(target, SUM_C.into(), 1)],
        Backend::OpenCl => {
            vec![sum(target, format!("{FP64}{SUM_OPENCL}"), 64), sum(target, format!("{FP64}{SUM_WIDE}"), 1)]
        }
        Backend::Cuda => vec![sum(target, SUM_CUDA.into(), 64)],
    }
}

fn sum(target: Target, source: String, block: u64) -> Program {
    let n = || HostExpr::Param("n".into());
    let args = vec![
        arg("n", ScalarType::I64, ArgKind::Param),
        buffer("x", n(), BufferAccess::In),
        buffer("out", n(), BufferAccess::Out),
    ];
    program(target, "sum", source, args, chunks(), block)
}

const FP64: &str = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";

const TRIAD_C: &str = "\
#include <stdint.h>
void triad_launch(void *const *args, const int64_t *grid) {
  const int64_t n = 1024 * grid[0];
  const double s = *(const double *)args[1];
  double *restrict a = *(double *const *)args[2];
  const double *restrict b = *(const double *const *)args[3];
  const double *restrict c = *(const double *const *)args[4];
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; ++i) a[i] = b[i] + s * c[i];
}
";

const TRIAD_OPENCL: &str = "\
__kernel void triad(long n, double s, __global double *restrict a, __global const double *restrict b,
                    __global const double *restrict c) {
  const long i = 1024 * (long)get_group_id(0) + get_local_id(0);
  for (int k = 0; k < 16; ++k) a[i + 64 * k] = b[i + 64 * k] + s * c[i + 64 * k];
}
";

/// For processors: one work-item a group, whole vectors.
const TRIAD_WIDE: &str = "\
__kernel void triad(long n, double s, __global double *restrict a, __global const double *restrict b,
                    __global const double *restrict c) {
  const long i = 128 * (long)get_group_id(0);
  for (int k = 0; k < 128; ++k) vstore8(vload8(i + k, b) + s * vload8(i + k, c), i + k, a);
}
";

const TRIAD_CUDA: &str = "\
extern \"C\" __global__ void triad(long long n, double s, double *__restrict__ a,
                                 const double *__restrict__ b, const double *__restrict__ c) {
  const long long i = 1024LL * blockIdx.x + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 16; ++k) a[i + 64 * k] = b[i + 64 * k] + s * c[i + 64 * k];
}
";

const SUM_C: &str = "\
#include <stdint.h>
void sum_launch(void *const *args, const int64_t *grid) {
  const int64_t chunks = grid[0];
  const double *restrict x = *(const double *const *)args[1];
  double *restrict out = *(double *const *)args[2];
#pragma omp parallel for schedule(static)
  for (int64_t g = 0; g < chunks; ++g) {
    double t = 0.0;
#pragma omp simd reduction(+ : t)
    for (int64_t i = 0; i < 1024; ++i) t += x[1024 * g + i];
    out[g] = t;
  }
}
";

const SUM_OPENCL: &str = "\
__kernel void sum(long n, __global const double *restrict x, __global double *restrict out) {
  const long i = 1024 * (long)get_group_id(0) + get_local_id(0);
  double t = 0.0;
  for (int k = 0; k < 16; ++k) t += x[i + 64 * k];
  out[64 * (long)get_group_id(0) + get_local_id(0)] = t;
}
";

/// For processors: one work-item a group, whole vectors, four chains of additions.
const SUM_WIDE: &str = "\
__kernel void sum(long n, __global const double *restrict x, __global double *restrict out) {
  const long i = 128 * (long)get_group_id(0);
  double8 t0 = 0.0, t1 = 0.0, t2 = 0.0, t3 = 0.0;
  for (int k = 0; k < 128; k += 4) {
    t0 += vload8(i + k, x); t1 += vload8(i + k + 1, x);
    t2 += vload8(i + k + 2, x); t3 += vload8(i + k + 3, x);
  }
  const double8 t = t0 + t1 + t2 + t3;
  out[get_group_id(0)] = t.s0 + t.s1 + t.s2 + t.s3 + t.s4 + t.s5 + t.s6 + t.s7;
}
";

const SUM_CUDA: &str = "\
extern \"C\" __global__ void sum(long long n, const double *__restrict__ x, double *__restrict__ out) {
  const long long i = 1024LL * blockIdx.x + threadIdx.x;
  double t = 0.0;
#pragma unroll
  for (int k = 0; k < 16; ++k) t += x[i + 64 * k];
  out[64LL * blockIdx.x + threadIdx.x] = t;
}
";

/// A countable loop: arguments groups, iterations, p, q, out; out[0] is the count of one iteration.
fn counted(target: Target, entry: &str, source: String, block: u64, groups: u64, iterations: u64) -> Variant {
    let groups_param = || Box::new(HostExpr::Param("groups".into()));
    let len = HostExpr::Mul(groups_param(), Box::new(HostExpr::Const(block as i64)));
    let args = vec![
        arg("groups", ScalarType::I64, ArgKind::Param),
        arg("iterations", ScalarType::I32, ArgKind::Param),
        arg("p", ScalarType::F64, ArgKind::Scalar),
        arg("q", ScalarType::F64, ArgKind::Scalar),
        buffer("out", len, BufferAccess::Out),
    ];
    let program = program(target, entry, source, args, *groups_param(), block);
    Variant { program, groups, iterations }
}

/// Chains `x = p*x + q` (with these p and q they stay near 1): enough of them to hide the latency
/// of two pipelines of four cycles, few enough for sixteen vector registers.
pub(crate) fn fma(info: &DeviceInfo) -> Vec<Variant> {
    let cores = u64::from(info.compute_units.max(1));
    match info.backend {
        Backend::C => vec![counted(Target::C, "chains", FMA_C.into(), 1, 4 * cores, 400_000)],
        Backend::OpenCl => {
            let wide = |width: u64| {
                let source = fma_opencl(&format!("double{width}"), 10, width);
                counted(Target::OpenCl, "chains", source, 1, 4 * cores, 400_000)
            };
            // Vectors for processors, many work-items for cards: the best counts.
            let many = counted(Target::OpenCl, "chains", fma_opencl("double", 16, 1), 64, 64 * cores, 1000);
            vec![wide(8), wide(4), many]
        }
        Backend::Cuda => {
            vec![counted(Target::Cuda, "chains", fma_cuda(16), 256, 64 * cores, 2000)]
        }
    }
}

const FMA_C: &str = "\
#include <stdint.h>
#if defined(__AVX512F__)
typedef double v __attribute__((vector_size(64)));
#elif defined(__AVX__)
typedef double v __attribute__((vector_size(32)));
#else
typedef double v __attribute__((vector_size(16)));
#endif
enum { W = sizeof(v) / sizeof(double), CHAINS = 10 };
void chains_launch(void *const *args, const int64_t *grid) {
  const int32_t iterations = *(const int32_t *)args[1];
  const double p = *(const double *)args[2], q = *(const double *)args[3];
  double *out = *(double *const *)args[4];
#pragma omp parallel for schedule(static)
  for (int64_t g = 0; g < grid[0]; ++g) {
    const v zero = {0};
    const v vp = zero + p, vq = zero + q;
    v x0 = zero + 0.1 * g, x1 = x0 + 1, x2 = x0 + 2, x3 = x0 + 3, x4 = x0 + 4;
    v x5 = x0 + 5, x6 = x0 + 6, x7 = x0 + 7, x8 = x0 + 8, x9 = x0 + 9;
    for (int32_t k = 0; k < iterations; ++k) {
      x0 = vp * x0 + vq; x1 = vp * x1 + vq; x2 = vp * x2 + vq; x3 = vp * x3 + vq; x4 = vp * x4 + vq;
      x5 = vp * x5 + vq; x6 = vp * x6 + vq; x7 = vp * x7 + vq; x8 = vp * x8 + vq; x9 = vp * x9 + vq;
    }
    const v t = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9;
    double s = 0.0;
    for (int i = 0; i < W; ++i) s += t[i];
    out[g] = s == -1.0 ? s : 2.0 * W * CHAINS;
  }
}
";

/// Declarations, updates and the sum of `chains` chains.
fn chain_text(chains: u64, update: impl Fn(&str) -> String) -> (String, String, String) {
    let names: Vec<_> = (0..chains).map(|i| format!("x{i}")).collect();
    let starts: String = (1..chains).map(|i| format!(", x{i} = x0 + {i}.0")).collect();
    let updates: String = names.iter().map(|x| format!("    {}\n", update(x))).collect();
    (starts, updates, names.join(" + "))
}

fn fma_opencl(ty: &str, chains: u64, width: u64) -> String {
    let (starts, updates, total) = chain_text(chains, |x| format!("{x} = fma(({ty})p, {x}, ({ty})q);"));
    let sum = match width {
        1 => "t".into(),
        _ => (0..width).map(|i| format!("t.s{i}")).collect::<Vec<_>>().join(" + "),
    };
    let count = 2 * chains * width;
    format!(
        "{FP64}__kernel void chains(long groups, int iterations, double p, double q, __global double *out) {{
  {ty} x0 = ({ty})(0.1 * get_global_id(0)){starts};
  for (int k = 0; k < iterations; ++k) {{
{updates}  }}
  const {ty} t = {total};
  const double s = {sum};
  out[get_global_id(0)] = s == -1.0 ? s : {count}.0;
}}
"
    )
}

fn fma_cuda(chains: u64) -> String {
    let (starts, updates, total) = chain_text(chains, |x| format!("{x} = fma(p, {x}, q);"));
    let count = 2 * chains;
    format!(
        "extern \"C\" __global__ void chains(long long groups, int iterations, double p, double q, double *out) {{
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  double x0 = 0.1 * i{starts};
  for (int k = 0; k < iterations; ++k) {{
{updates}  }}
  const double s = {total};
  out[i] = s == -1.0 ? s : {count}.0;
}}
"
    )
}

/// Each work-item reads 16 doubles of local memory an iteration, without bank conflicts.
pub(crate) fn local(info: &DeviceInfo) -> Vec<Variant> {
    let groups = 16 * u64::from(info.compute_units.max(1));
    match info.backend {
        Backend::C | Backend::OpenCl => Vec::new(), // OpenCL here runs on processors: it is ordinary memory
        Backend::Cuda => {
            vec![counted(Target::Cuda, "local_reads", LOCAL_CUDA.into(), 256, groups, 2000)]
        }
    }
}

/// The addresses move with `k`, so that no read leaves the loop; the count is in bytes.
const LOCAL_CUDA: &str = "\
extern \"C\" __global__ void local_reads(long long groups, int iterations, double p, double q, double *out) {
  __shared__ double s[2048];
  for (int i = threadIdx.x; i < 2048; i += 256) s[i] = p * i + q;
  __syncthreads();
  double t0 = 0.0, t1 = 0.0, t2 = 0.0, t3 = 0.0;
  for (int k = 0; k < iterations; ++k) {
    const double *r = s + ((threadIdx.x + 32 * k) & 1023);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      t0 += r[256 * j]; t1 += r[256 * j + 64]; t2 += r[256 * j + 128]; t3 += r[256 * j + 192];
    }
  }
  const double t = t0 + t1 + t2 + t3;
  out[(long long)blockIdx.x * 256 + threadIdx.x] = t == -1.0 ? t : 128.0;
}
";
