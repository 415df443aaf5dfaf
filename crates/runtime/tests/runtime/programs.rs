//! Programs written by hand for each target, and fresh inputs.

use kingpost_codegen::{
    ArgKind, ArgSpec, BufferAccess, Feature, HostExpr, LaunchPlan, Precondition, Program, Target,
};
use kingpost_ir::{ScalarType, TableData};
use kingpost_runtime::{Buffer, Device, buffer_of, download_values};

pub fn param(name: &str) -> HostExpr {
    HostExpr::Param(name.into())
}

pub fn add(a: HostExpr, b: HostExpr) -> HostExpr {
    HostExpr::Add(Box::new(a), Box::new(b))
}

/// `ceil(n / block)`.
pub fn groups(block: u64) -> HostExpr {
    let block = block as i64;
    HostExpr::FloorDiv(
        Box::new(add(param("n"), HostExpr::Const(block - 1))),
        Box::new(HostExpr::Const(block)),
    )
}

pub fn arg(name: &str, ty: ScalarType, kind: ArgKind) -> ArgSpec {
    ArgSpec { name: name.into(), ty, kind, aligned: ty.bytes() }
}

pub fn buffer(name: &str, access: BufferAccess) -> ArgSpec {
    arg(name, ScalarType::F64, ArgKind::Buffer { len: param("n"), access })
}

fn plan(args: Vec<ArgSpec>, block: u64) -> LaunchPlan {
    LaunchPlan {
        args,
        grid: [groups(block), HostExpr::Const(1), HostExpr::Const(1)],
        block: [block, 1, 1],
        local_bytes: 0,
        dynamic_local_bytes: 0,
        maps: Vec::new(),
        private_bytes: 0,
        features: vec![Feature::Fp64],
        preconditions: vec![],
        defined: vec![],
        notes: vec![],
    }
}

/// `y[i] += a * x[i] + shift[i % 4]` for i in 0..n, in groups of 64; refuses n > 1_000_000.
pub fn axpy(target: Target) -> Program {
    let source = match target {
        Target::C => AXPY_C,
        Target::OpenCl => AXPY_OPENCL,
        Target::Cuda | Target::Hip => AXPY_CUDA,
    };
    let mut plan = plan(
        vec![
            arg("n", ScalarType::I32, ArgKind::Param),
            arg("a", ScalarType::F64, ArgKind::Scalar),
            buffer("x", BufferAccess::In),
            buffer("y", BufferAccess::InOut),
            arg("shift", ScalarType::F64, ArgKind::Table(TableData::real(SHIFT))),
        ],
        64,
    );
    let value =
        add(HostExpr::Const(1_000_000), HostExpr::Mul(Box::new(HostExpr::Const(-1)), Box::new(param("n"))));
    plan.preconditions.push(Precondition { value, text: "n <= 1000000".into(), array: None });
    Program {
        target,
        entry: "axpy".into(),
        source: source.into(),
        plan,
        contraction: true,
        repeated_writes: true,
        untrusted: vec![],
        launches: None,
    }
}

pub const SHIFT: [f64; 4] = [0.5, -1.25, 3.0, 0.0625];

const AXPY_C: &str = r"
#include <stdint.h>
static void axpy(int32_t n, double a, const double *restrict x, double *restrict y,
                 const double *restrict shift, const int64_t *grid) {
#pragma omp parallel for
  for (int64_t g = 0; g < grid[0]; ++g)
    for (int64_t l = 0; l < 64; ++l)
      if (64 * g + l < n) {
        const int64_t i = 64 * g + l;
        y[i] += a * x[i] + shift[i % 4];
      }
}
void axpy_launch(void *const *args, const int64_t *grid) {
  axpy(*(const int32_t *)args[0], *(const double *)args[1], *(const double *const *)args[2],
       *(double *const *)args[3], *(const double *const *)args[4], grid);
}
";

const AXPY_OPENCL: &str = r"
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void axpy(int n, double a, __global const double *restrict x, __global double *restrict y,
                   __global const double *restrict shift) {
  const int i = get_group_id(0) * 64 + get_local_id(0);
  if (i < n) y[i] += a * x[i] + shift[i % 4];
}
";

const AXPY_CUDA: &str = r#"
extern "C" __global__ void axpy(int n, double a, const double *__restrict__ x, double *__restrict__ y,
                                const double *__restrict__ shift) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] += a * x[i] + shift[i % 4];
}
"#;

/// `sums[i % 3] += x[i]` for i in 0..n by atomic updates of doubles.
pub fn histogram(target: Target) -> Program {
    let source = match target {
        Target::C => HISTOGRAM_C,
        Target::OpenCl => HISTOGRAM_OPENCL,
        Target::Cuda | Target::Hip => HISTOGRAM_CUDA,
    };
    let sums = ArgKind::Buffer { len: HostExpr::Const(3), access: BufferAccess::InOut };
    let mut plan = plan(
        vec![
            arg("n", ScalarType::I64, ArgKind::Param),
            buffer("x", BufferAccess::In),
            arg("sums", ScalarType::F64, sums),
        ],
        32,
    );
    plan.features.push(Feature::Int64Atomics);
    Program {
        target,
        entry: "histogram".into(),
        source: source.into(),
        plan,
        contraction: true,
        repeated_writes: true,
        untrusted: vec![],
        launches: None,
    }
}

const HISTOGRAM_C: &str = r"
#include <stdint.h>
void histogram_launch(void *const *args, const int64_t *grid) {
  const int64_t n = *(const int64_t *)args[0];
  const double *x = *(const double *const *)args[1];
  double *sums = *(double *const *)args[2];
#pragma omp parallel for
  for (int64_t g = 0; g < grid[0]; ++g)
    for (int64_t i = 32 * g; i < 32 * g + 32; ++i)
      if (i < n) {
#pragma omp atomic
        sums[i % 3] += x[i];
      }
}
";

/// The first read is atomic too: a plain one would be a race.
const HISTOGRAM_OPENCL: &str = r"
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
static void add_double(volatile __global double *p, double v) {
  volatile __global ulong *q = (volatile __global ulong *)p;
  ulong seen = atom_add(q, (ulong)0), old;
  do {
    old = seen;
    seen = atom_cmpxchg(q, old, as_ulong(as_double(old) + v));
  } while (seen != old);
}
__kernel void histogram(long n, __global const double *x, volatile __global double *sums) {
  const long i = get_group_id(0) * 32 + get_local_id(0);
  if (i < n) add_double(sums + i % 3, x[i]);
}
";

const HISTOGRAM_CUDA: &str = r#"
extern "C" __global__ void histogram(long long n, const double *x, double *sums) {
  const long long i = blockIdx.x * 32LL + threadIdx.x;
  if (i < n) atomicAdd(sums + i % 3, x[i]);
}
"#;

/// `n` fresh values in [-1, 1); the seed is printed so that a failure can be repeated.
pub fn fresh(n: usize) -> Vec<f64> {
    let seed = match std::env::var("KINGPOST_TEST_SEED") {
        Ok(s) => s.parse().unwrap(),
        Err(_) => {
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64
        }
    };
    println!("KINGPOST_TEST_SEED={seed}");
    let mut state = seed;
    (0..n)
        .map(|_| {
            // splitmix64 (Steele et al. 2014)
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^= z >> 31;
            (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

pub fn put(device: &dyn Device, values: &[f64]) -> Buffer {
    buffer_of(device, values).unwrap()
}

pub fn get(device: &dyn Device, buffer: &Buffer) -> Vec<f64> {
    download_values(device, buffer).unwrap()
}

/// Every device of this machine that can run a program; `KINGPOST_TEST_DEVICES=cuda` picks some.
pub fn each_device(mut test: impl FnMut(&dyn Device, Target)) {
    let names = std::env::var("KINGPOST_TEST_DEVICES").unwrap_or_else(|_| "c,opencl,cuda".into());
    for name in names.split(',') {
        match kingpost_runtime::open(name) {
            Ok(device) => test(&*device, device.info().backend.target()),
            // Processors always run; a card may be absent.
            Err(kingpost_runtime::RuntimeError::Unavailable(e)) if name == "cuda" => {
                println!("skipped: no CUDA device ({e})");
            }
            Err(e) => panic!("{name}: {e}"),
        }
    }
}
