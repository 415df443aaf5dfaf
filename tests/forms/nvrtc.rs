//! CUDA source of the operator actions compiles with NVRTC for sm_90; no GPU is needed.
//!
//! `make test` compiles both ends of the degrees of each operator, `make test-all` all 70.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support::{cases, is_long_run, of_run};
use kingpost::codegen::{Options, Target, generate};
use kingpost::forms::element::CellShape;
use kingpost::forms::lowering::{LoweringOptions, MeshForm, lower};
use kingpost::forms::quadrature::QuadratureScheme;
use kingpost::forms::strategies::{FactorisedLines, FactorisedPlanes, SingleCell, StagedCells, StagedTiling};
use kingpost::forms::tiling::TilingParameters;
use kingpost::ir::Kernel;
use kingpost::kernels::{BoundaryValueProblem, Operator};
use kingpost::runtime::Cache;
use kingpost::runtime::cuda::nvrtc;
use kingpost::transforms::steps;
use kingpost::{Mapping, transform};
use std::path::Path;

#[test]
fn cuda_sources_compile() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let cache = Cache::from_environment();
    let mut compiled = 0;
    for (operator, dim, degree) in cases() {
        if !is_long_run() && degree != 1 && degree != 3 {
            continue;
        }
        let name = format!("{operator}_{dim}d_p{degree}");
        let options = LoweringOptions::new(&name).with_scheme(QuadratureScheme::XiaoGimbutas);
        let lowered = lower(&operator.form(dim, degree).unwrap(), &options).unwrap();
        let (kernel, _) = transform(&lowered.kernel, &Mapping::single_cell()).unwrap();
        let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
        let object = nvrtc::compile_for("sm_90", &name, &program.source, &cache).unwrap();
        let [resources] = object.resources.as_slice() else { panic!("{name}: {}", object.log) };
        assert!(!object.cubin.is_empty() && resources.registers > 0 && resources.entry == program.entry);
        compiled += 1;
    }
    assert_eq!(compiled, if is_long_run() { 70 } else { 20 });
}

/// The sums of a hexahedron, taken by the work-items of a group together: no spills.
#[test]
fn factorised_sums_compile() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let space = Operator::Laplace.space_on(CellShape::Hexahedron, 3);
    let form = Operator::Laplace.action_on(&space);
    let lowered = MeshForm::new(&form, &LoweringOptions::new("laplace_q3")).unwrap();
    let lines = |literal_tables| Mapping::from(FactorisedLines { cells: 5, literal_tables, factors: None });
    for mapping in of_run([Mapping::from(FactorisedPlanes { cells: 4 }), lines(false), lines(true)], &[0]) {
        let (kernel, _) = transform(&lowered.kernels()[0], &mapping).unwrap();
        let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
        let cache = Cache::from_environment();
        let object = nvrtc::compile_for("sm_90", "laplace_q3", &program.source, &cache).unwrap();
        let [resources] = object.resources.as_slice() else { panic!("{}", object.log) };
        println!("{mapping}: {resources}");
        assert!(resources.to_string().contains(" 0 B spilled"), "{mapping}: {resources}");
    }
}

/// The kernels of solvers, and those of a nonlinear problem and its matrix: no spills.
#[test]
fn solvers_compile() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let cache = Cache::from_environment();
    let compiles = |kernel: &Kernel| {
        let program = generate(kernel, Target::Cuda, &Options::default()).unwrap();
        let object = nvrtc::compile_for("sm_90", &kernel.name, &program.source, &cache).unwrap();
        let [resources] = object.resources.as_slice() else { panic!("{}", object.log) };
        println!("{}: {resources}", kernel.name);
        // four words at most, of `fill_image`, by the compiler's choice: it leaves most registers
        // free; one number of `inverse_of_few`, which a single group runs
        let few: &[&str] = match &*kernel.name {
            "fill_image" => &[" 0 B spilled", " 16 B spilled"],
            "inverse_of_few" => &[" 0 B spilled", " 8 B spilled"],
            _ => &[" 0 B spilled"],
        };
        let spills = resources.to_string();
        assert!(few.iter().any(|few| spills.contains(few)), "{}: {resources}", kernel.name);
    };
    let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/solve/src/kernels");
    let mut compiled = 0;
    let files = [texts.join("aggregation"), texts].map(|folder| std::fs::read_dir(folder).unwrap());
    let paths = files.into_iter().flatten().map(|entry| entry.unwrap().path());
    for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "kingpost")) {
        // of vectors in space and on tetrahedra, where that is left open
        let open =
            [("CORNERS", "4"), ("FACETS", "4"), ("SIDES", "3"), ("SIDE", "3"), ("LANES", "4"), ("KEPT", "8")];
        let blocks = [
            ("SLICES", "4"),
            ("LISTS", "4"),
            ("LIST", "p"),
            (" and OWN_SLICE", ""),
            ("TURNS", "3"),
            ("HEIGHT", "3"),
            ("MIDDLE", "3"),
            ("WIDTH", "6"),
            ("ROOM", "512"),
            ("TEAMS", "4"),
            ("SHIFT", "2"),
            ("MARKS", "8"),
            ("COUNT", "16"),
        ];
        let text = std::fs::read_to_string(path).unwrap();
        let text = open.iter().chain(&blocks).fold(text, |text, (name, value)| text.replace(name, value));
        // sums by one sub-group, and by groups
        let divisions = [["32", "32", "true"], ["2048", "256", "false"]];
        let divisions = &divisions[usize::from(!text.contains("SHUFFLE"))..];
        for [unknowns, items, shuffle] in divisions {
            let group = if text.contains("ITEMS") { unknowns } else { "32" };
            let text = text.replace("GROUP", group).replace("ITEMS", items);
            let (kernel, script) = steps().file(&text.replace("SHUFFLE", shuffle)).unwrap();
            let schedule = script.map(|script| script.apply(&kernel).unwrap());
            compiles(schedule.as_ref().map_or(&kernel, |schedule| schedule.kernel()));
        }
        compiled += 1;
    }
    assert!(compiled >= 64, "{compiled}");
    let problem = BoundaryValueProblem::Hyperelasticity;
    let space = problem.space(CellShape::Tetrahedron, 1);
    for form in [problem.energy(&space), problem.residual(&space), problem.tangent(&space)] {
        let form = MeshForm::new(&form, &LoweringOptions::new("neo_hookean")).unwrap();
        for lowered in form.kernels() {
            compiles(&transform(lowered, &Mapping::from(SingleCell { cells: 128 })).unwrap().0);
        }
    }
}

/// Modes instead of points, of every linear operator, one cell a work-item and tiled.
#[test]
fn modes_compile() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let cache = Cache::from_environment();
    let cases =
        [(Operator::Mass, 10), (Operator::Helmholtz, 4), (Operator::Laplace, 4), (Operator::Elasticity, 4)];
    for (operator, tile) in of_run(cases, &[0, 1]) {
        let options =
            LoweringOptions::new(format!("{operator}_modes")).with_scheme(QuadratureScheme::XiaoGimbutas);
        let lowered = lower(&operator.form(3, 2).unwrap(), &options).unwrap();
        let tiling = TilingParameters {
            cells: 32,
            work_items_per_cell: 2,
            quad_tile: tile,
            eval_rows: tile,
            // a function for each loop
            eval_cols: vec![10; if operator == Operator::Helmholtz { 2 } else { 1 }],
            quad_rows: 10,
            quad_cols: tile,
        };
        let single = Mapping::from(StagedCells { cells: 32, constant_tables: true });
        for mapping in [single, Mapping::from(StagedTiling(tiling))] {
            let mapping = mapping.with_modes();
            let (kernel, _) = transform(&lowered, &mapping).unwrap();
            let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
            assert!(program.source.contains("phi_p2_modes") || program.source.contains("phi_p2_d0_modes"));
            assert!(!program.source.contains("weights"), "{}", program.source);
            let object = nvrtc::compile_for("sm_90", &options.name, &program.source, &cache).unwrap();
            let [resources] = object.resources.as_slice() else { panic!("{mapping}: {}", object.log) };
            assert!(resources.to_string().contains(" 0 B spilled"), "{mapping}: {resources}");
        }
    }
}

#[test]
fn a_source_that_is_wrong_is_refused_with_the_log() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let source = "extern \"C\" __global__ void f(double *x) { x[0] = y; }";
    let error = nvrtc::compile_for("sm_90", "f", source, &Cache::disabled()).unwrap_err().to_string();
    let line = format!("line 1, `{source}`: identifier \"y\" is undefined;");
    assert!(error.contains("the code of `f` does not compile") && error.contains(&line), "{error}");
}

/// Infinities and nans as literals and in tables, and extrema of them, also indivisible ones.
#[test]
fn infinities_and_nans_compile() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let cache = Cache::from_environment();
    for ty in ["f64", "f32"] {
        for space in ["global", "constant"] {
            let text = format!(
                "kernel k\n\narg x: {ty}[1] in\narg b: f32[4] in\narg y: {ty}[4] inout\narg top: {ty}[1] inout\narg v: {ty}[4] inout\ntable w: {ty}[4] {space}\n\n\
                 for i in 0..4 {{g.0}}\n  s: y[i] min= w[i]\n  t: top[0] max= select(x[0] < inf, b[i], -inf) {{atomic}}\n  \
                 u: v[i] = x[0]*max(nan, sqrt(sum(k in 0..3: 1)/2))\n\ntable w = [nan, inf, -inf, 0.5]\n"
            );
            let kernel = kingpost::ir::text::parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
            let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
            let object = nvrtc::compile_for("sm_90", "k", &program.source, &cache).unwrap();
            assert!(!object.cubin.is_empty(), "{}", object.log);
        }
    }
}

/// Where the compiler has decided that a branch is never taken.
fn dead_branches(ptx: &str) -> usize {
    ptx.lines().filter(|line| line.contains("mov.pred") && line.trim_end().ends_with(", 0;")).count()
}

/// NVVM gives up the outer of two loops when it unrolls the inner one, whose length changes:
/// printed so that it does not.
#[test]
fn short_triangles_keep_their_outer_loop() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let ptx =
        |name: &str, source: &str| nvrtc::compile_for("sm_90", name, source, &Cache::disabled()).unwrap().ptx;
    let reproducer = std::fs::read_to_string("tests/compilers/nvvm_leaves_a_triangle.cu").unwrap();
    let faulty = dead_branches(&ptx("triangle", &reproducer));
    let kernel = "kernel triangle
arg x: f64[3] inout
arg a: f64[3] in
for i in 0..3
  s: x[i] = product(j in i..3: tanh(a[i])) + sin(x[i])
";
    let kernel = kingpost::ir::text::parse(kernel).unwrap();
    let source = generate(&kernel, Target::Cuda, &Options::default()).unwrap().source;
    assert_eq!(source.matches("#pragma unroll 1\n").count(), 1, "{source}");
    assert_eq!(dead_branches(&ptx("triangle", &source)), 0, "{source}");
    let unrolled = source.replace("#pragma unroll 1\n", "");
    assert_eq!(dead_branches(&ptx("triangle", &unrolled)), faulty, "{unrolled}");
    if faulty == 0 {
        println!("{}: the fault that is printed around is gone", nvrtc::version().unwrap());
    }
}

/// NVVM reads an array once that the loop around writes, where the arrays that are written have
/// `__restrict__`: printed so that it does not.
#[test]
fn what_a_loop_writes_is_read_again() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let reads = |name: &str, source: &str| {
        let ptx = nvrtc::compile_for("sm_90", name, source, &Cache::disabled()).unwrap().ptx;
        ptx.matches("ld.global.f64").count()
    };
    let kernel = "kernel reads
arg x: f64[3] inout
arg y: f64[9] inout
arg g: f32[9] in
for i in 0..3 where i mod 2 == 0
  for j in 0..3
    s: y[0] += -max(sin(y[6 - 3*i]), x[i] + g[6 - 3*i + j])
for k in 0..3
  t: x[k] = 0.0
";
    let kernel = kingpost::ir::text::parse(kernel).unwrap();
    let source = generate(&kernel, Target::Cuda, &Options::default()).unwrap().source;
    assert!(source.contains("double *x,") && source.contains("double *y,"), "{source}");
    assert!(source.contains("const float *__restrict__ g"), "{source}");
    let reproducer = std::fs::read_to_string("tests/compilers/nvvm_reads_once.cu").unwrap();
    let right = reproducer.replace("double *__restrict__ ", "double *");
    // `y[6 - 3*i]` for each `j`, `y[0]` and `x[i]`
    assert_eq!([reads("reads", &right), reads("reads", &source)], [5, 5], "{source}");
    if reads("reads", &reproducer) == 5 {
        println!("{}: the fault that is printed around is gone", nvrtc::version().unwrap());
    }
}

/// The program of a fact of code generation.
fn kernel_of(name: &str) -> Kernel {
    let facts = kingpost_facts::load(Path::new("crates/codegen/facts")).unwrap();
    let (_, fact) = facts.into_iter().find(|(_, fact)| fact.name == name).unwrap();
    kingpost::ir::text::parse(&fact.kernel.text).unwrap()
}

/// Kernels whose loops over lanes are vectors.
#[test]
fn vectors_compile() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let cache = Cache::from_environment();
    let facts = [
        "vectors_are_copied_whole",
        "vectors_calculate",
        "tails_of_vectors_stay_lanes",
        "lanes_that_are_no_vectors",
        "vectors_start_at_their_multiples",
        "lanes_sum_over_loops",
    ];
    for fact in facts {
        let kernel = kernel_of(fact);
        let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
        assert!(program.source.contains("reinterpret_cast<const double2 *>"), "{fact}");
        let object = nvrtc::compile_for("sm_90", fact, &program.source, &cache).unwrap();
        assert!(!object.cubin.is_empty() && object.resources[0].entry == program.entry, "{}", object.log);
    }
}

/// A fragment that other lanes hold comes by a shuffle into the operand of a matrix instruction.
#[test]
fn shuffles_in_front_of_an_intrinsic_compile() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let kernel = kernel_of("intrinsic_reads_another_lane");
    let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
    let cache = Cache::from_environment();
    let object = nvrtc::compile_for("sm_90", "other_lane", &program.source, &cache).unwrap();
    assert!(!object.cubin.is_empty() && object.resources[0].entry == program.entry, "{}", object.log);
}
