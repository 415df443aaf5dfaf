//! Sixteen cells a sub-group by matrix instructions: what the kernels are, what they compute, what
//! is refused.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{bent_mesh, is_long_run, of_run};
use kingpost::codegen::{Options, Target, generate};
use kingpost::forms::strategies::{MatrixCells, MatrixInstruction, matrix_sizes};
use kingpost::ir::AxisTag;
use kingpost::kernels::Operator;
use kingpost::prelude::interpret;
use kingpost::runtime::{Cache, hip};
use kingpost::tuning::transform;
use kingpost::{Mapping, Problem, Random, RelativeError};

fn problem(operator: Operator, dim: usize, degree: usize, divisions: usize, seed: u64) -> Problem {
    Problem::operator(operator, degree, None, bent_mesh(dim, divisions), seed).unwrap()
}

fn matrix_cells(sub_groups: u64, groups: u64, kept_tables: u64) -> Mapping {
    Mapping::from(MatrixCells::new(sub_groups, groups, kept_tables))
}

/// The same with copies of the next block under way.
fn overlapped(sub_groups: u64, groups: u64, kept_tables: u64) -> Mapping {
    Mapping::from(MatrixCells { overlapped: true, ..MatrixCells::new(sub_groups, groups, kept_tables) })
}

/// Fewer cells than a block, full blocks and a rest, several blocks a group; rows and modes that
/// tiles divide (3-D P2 mass has 10 of both, 2-D P6 has 28) and do not; degrees of freedom together,
/// and those of vertices, edges, faces and the interior separately.
#[test]
fn results_are_those_of_the_reference() {
    let seed = Random::fresh_seed();
    let cases = [
        (Operator::Mass, 2, 1, 2),
        (Operator::Mass, 3, 2, 2),
        (Operator::Laplace, 2, 6, 3),
        (Operator::Laplace, 3, 3, 2),
        (Operator::Helmholtz, 2, 3, 5),
        (Operator::Helmholtz, 3, 1, 3),
    ];
    for (k, (operator, dim, degree, divisions)) in of_run(cases.into_iter().enumerate(), &[0, 1, 3, 4]) {
        let problem = problem(operator, dim, degree, divisions, seed);
        let expected = problem.reference().unwrap();
        let mappings =
            [matrix_cells(1, 2, 9), overlapped(2, 2, 0), matrix_cells(2, 1, 1), overlapped(1, 1, 9)];
        // a mapping for each case, the others in a long run
        for (_, mapping) in mappings.into_iter().enumerate().filter(|(m, _)| is_long_run() || m % 4 == k % 4)
        {
            let parts = problem.lowered.entity_parts().unwrap();
            let in_parts = [1, 2, 4].contains(&k).then(|| mapping.with_parts(&parts));
            let mapping = in_parts.flatten().unwrap_or(mapping);
            let (kernel, recipe) = transform(&problem.lowered, &mapping).unwrap();
            let replayed = recipe.apply(&problem.lowered.kernel).unwrap();
            assert_eq!(replayed, kernel);
            let mut memory = problem.memory.clone();
            interpret(&kernel, &mut memory).unwrap();
            let error = RelativeError::between(memory.f64s(problem.output()).unwrap(), &expected);
            assert!(
                error.is_within(1e-12),
                "{operator} {dim}-D P{degree}, {mapping}, seed {seed}: {error:?}"
            );
        }
    }
}

/// By the instruction of wavefronts.
fn wavefronts(sub_groups: u64, groups: u64, kept_tables: u64) -> Mapping {
    let instruction = MatrixInstruction::Mfma16x16x4;
    Mapping::from(MatrixCells { instruction, ..MatrixCells::new(sub_groups, groups, kept_tables) })
}

/// By wavefronts of 64: degrees of freedom that four divides and does not, several tiles of 16 rows, blocks of
/// cells that are full and a rest; tables kept and not. The code for AMD's processors has the instructions, twice
/// for each table, tile of modes, and four degrees of freedom or four rows, and compiles.
#[test]
fn wavefronts_multiply_by_their_own_instruction() {
    let seed = Random::fresh_seed();
    // modes and degrees of freedom: 4, 4; 10, 20; 21, 28
    for (operator, dim, degree, divisions, [modes, terms, rows], tables) in [
        (Operator::Mass, 3, 1, 2, [1, 1, 1], 1),
        (Operator::Laplace, 3, 3, 2, [1, 5, 2], 3),
        (Operator::Laplace, 2, 6, 3, [2, 7, 2], 2),
    ] {
        let problem = problem(operator, dim, degree, divisions, seed);
        let expected = problem.reference().unwrap();
        let mappings = [(wavefronts(1, 2, 0), 1), (wavefronts(2, 1, 9), 2)];
        for (mapping, groups) in of_run(mappings, &[usize::from(degree == 6)]) {
            let (kernel, recipe) = transform(&problem.lowered, &mapping).unwrap();
            assert_eq!(recipe.apply(&problem.lowered.kernel).unwrap(), kernel);
            let mut memory = problem.memory.clone();
            interpret(&kernel, &mut memory).unwrap();
            let error = RelativeError::between(memory.f64s(problem.output()).unwrap(), &expected);
            assert!(
                error.is_within(1e-12),
                "{operator} {dim}-D P{degree}, {mapping}, seed {seed}: {error:?}"
            );
            let hip = generate(&kernel, Target::Hip, &Options::default()).unwrap();
            let calls = hip.source.matches("__builtin_amdgcn_mfma_f64_16x16x4f64").count();
            // the loop over tiles of modes stays; four instructions for the 16 modes of each tile of rows
            assert_eq!(calls, tables * (terms + 4 * rows), "{modes} tiles of modes\n{}", hip.source);
            assert!(!hip.source.contains("__shfl"), "{}", hip.source);
            assert_eq!(hip.plan.block, [64, groups, 1]);
            // elsewhere the meaning
            let opencl = generate(&kernel, Target::OpenCl, &Options::default()).unwrap();
            assert!(!opencl.source.contains("mfma"), "{}", opencl.source);
            if degree != 3 {
                continue; // a second of clang each
            }
            match hip::compile_program("gfx942", &hip, &Cache::from_environment()) {
                Ok(object) => {
                    assert!(object.assembly.contains("v_mfma_f64_16x16x4"), "{}", object.assembly);
                    println!("{operator} {dim}-D P{degree}, {mapping}: {}", object.resources[0]);
                }
                Err(error) => {
                    assert!(hip::version().is_err(), "{error}\n{}", hip.source);
                    println!("skipped: {error}");
                }
            }
        }
    }
    // no copies ahead
    let problem = problem(Operator::Laplace, 3, 3, 1, 1);
    let instruction = MatrixInstruction::Mfma16x16x4;
    let ahead = MatrixCells { instruction, overlapped: true, ..MatrixCells::new(1, 1, 0) };
    let refused = transform(&problem.lowered, &Mapping::from(ahead)).unwrap_err();
    assert!(
        refused.reason.contains("leave `overlapped` out and give a compute unit more groups"),
        "{}",
        refused.reason
    );
}

/// The same kernel, except for where its arrays are.
#[test]
fn arrays_in_dynamic_local_memory_hold_the_same() {
    let seed = Random::fresh_seed();
    let problem = problem(Operator::Mass, 3, 2, 2, seed);
    let plain = matrix_cells(2, 1, 1);
    let mapping: Mapping = serde_json::from_value(
        serde_json::json!({"strategy": "dynamic_local", "then": serde_json::to_value(&plain).unwrap()}),
    )
    .unwrap();
    assert_eq!(mapping, plain.clone().with_dynamic_local());
    assert_eq!(mapping.to_string(), format!("{plain}, dynamic local memory"));
    let (kernel, recipe) = transform(&problem.lowered, &mapping).unwrap();
    assert_eq!(recipe.apply(&problem.lowered.kernel).unwrap(), kernel);
    let (declared, _) = transform(&problem.lowered, &plain).unwrap();
    let mut provided = declared;
    provided.launch.dynamic_local = true;
    assert_eq!(provided, kernel);
    let cuda = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
    assert_eq!(cuda.plan.dynamic_local_bytes, cuda.plan.local_bytes);
    let mut memory = problem.memory.clone();
    interpret(&kernel, &mut memory).unwrap();
    let expected = problem.reference().unwrap();
    let error = RelativeError::between(memory.f64s(problem.output()).unwrap(), &expected);
    assert!(error.is_within(1e-12), "seed {seed}: {error:?}");
    // a kernel without local memory has nothing to place
    let refused = transform(&problem.lowered, &Mapping::single_cell().with_dynamic_local()).unwrap_err();
    assert!(refused.reason.contains("no temporary is in local memory"), "{}", refused.reason);
}

/// Two products a table, tile by tile; the values of modes stay in registers between them, and
/// nobody exchanges them.
#[test]
fn products_are_matrix_instructions() {
    let problem = problem(Operator::Laplace, 3, 3, 1, 1);
    let (kernel, _) = transform(&problem.lowered, &matrix_cells(4, 8, 3)).unwrap();
    let cuda = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
    // three derivatives, 20 degrees of freedom in tiles of 8, as terms and as columns
    assert_eq!(cuda.source.matches("mma.sync.aligned.m16n8k8").count(), 3 * 3 * 2);
    assert!(!cuda.source.contains("__shfl"), "{}", cuda.source);
    assert_eq!(cuda.plan.block, [32, 4, 1]);
    // what remains is not unrolled: its arrays would take the registers
    let rolled = kernel.inames.values().filter(|i| i.tag == AxisTag::Rolled).count();
    assert_eq!(cuda.source.matches("#pragma unroll 1").count(), rolled);
    let opencl = generate(&kernel, Target::OpenCl, &Options::default()).unwrap();
    assert!(!opencl.source.contains("mma"), "{}", opencl.source);
}

/// The copies of the next block are issued before the products, and the only wait in the loop
/// is at its end.
#[test]
fn copies_are_under_way_while_products_are_computed() {
    let problem = problem(Operator::Laplace, 3, 3, 1, 1);
    let (kernel, _) = transform(&problem.lowered, &overlapped(4, 8, 3)).unwrap();
    let cuda = generate(&kernel, Target::Cuda, &Options::default()).unwrap().source;
    let waits: Vec<usize> = cuda.match_indices("cp.async.wait_group").map(|(at, _)| at).collect();
    let copies: Vec<usize> = cuda.match_indices("cp.async.ca").map(|(at, _)| at).collect();
    let products: Vec<usize> = cuda.match_indices("mma.sync").map(|(at, _)| at).collect();
    let commit = cuda.find("atomicAdd").unwrap();
    let [first, last] = waits[..] else { panic!("{} waits in\n{cuda}", waits.len()) };
    // 16 cells of 20 degrees of freedom and four vertices, by 32 work-items, before the loop and in it
    assert_eq!(copies.len(), 2 * (10 + 2 * 3));
    let (before, inside) = copies.split_at(copies.len() / 2);
    assert!(before.iter().all(|at| *at < first));
    assert!(inside.iter().all(|at| first < *at && *at < products[0]));
    assert!(products.iter().all(|at| *at < last) && commit < last);
    let opencl = generate(&kernel, Target::OpenCl, &Options::default()).unwrap().source;
    assert!(!opencl.contains("cp.async"), "{opencl}");
}

/// What the sizes say is what the kernel takes, with all tables and with fewer.
#[test]
fn sizes_are_those_of_the_kernel() {
    for (operator, dim, degree) in [(Operator::Laplace, 3, 4), (Operator::Helmholtz, 2, 6)] {
        let form = problem(operator, dim, degree, 1, 1).lowered;
        let sizes = matrix_sizes(&form.kernel, &form.program).unwrap();
        let bytes = |mapping| {
            let (kernel, _) = transform(&form, &mapping).unwrap();
            generate(&kernel, Target::Cuda, &Options::default()).unwrap().plan.local_bytes
        };
        for kept in 0..=3 {
            let needed = bytes(matrix_cells(4, 8, kept));
            // the last row of an array has no room after it
            assert_eq!(sizes.tables_that_fit(4, false, needed + 200), Some(kept), "{operator}, {needed}");
            let needed = bytes(overlapped(4, 8, kept));
            assert_eq!(sizes.tables_that_fit(4, true, needed + 200), Some(kept), "{operator}, {needed}");
        }
        assert_eq!(sizes.tables_that_fit(4, false, 1000), None);
    }
}

/// Edges follow each other in the scatter, whose work-items have all of a cell's one after the
/// other; at vertices they have one vertex of cell after cell.
#[test]
fn transfers_in_parts_have_a_nest_each() {
    let problem = problem(Operator::Laplace, 2, 3, 3, 1);
    let together = matrix_cells(1, 1, 9);
    let parts = problem.lowered.entity_parts().unwrap();
    assert_eq!(parts, [3, 6, 1]);
    let mapping = together.with_parts(&parts).unwrap();
    assert_eq!(mapping.to_string(), format!("{together}, transfers of 3 + 6 + 1"));
    let atomics = |mapping: &Mapping| {
        let (kernel, _) = transform(&problem.lowered, mapping).unwrap();
        let cuda = generate(&kernel, Target::Cuda, &Options::default()).unwrap().source;
        let (blocks, _) = cuda.split_once("_tail").unwrap();
        assert!(!blocks.contains("__syncthreads()") || blocks.matches("__syncthreads").count() == 1);
        blocks.matches("atomicAdd").count()
    };
    // sixteen cells, 32 work-items: ten degrees of freedom are five rounds; three, six and one are
    // two, three and one
    assert_eq!([atomics(&together), atomics(&mapping)], [5, 2 + 3 + 1]);
}

#[test]
fn what_has_no_matrix_products_is_refused() {
    let vector = problem(Operator::Elasticity, 2, 2, 1, 1).lowered;
    let nonlinear = problem(Operator::Hyperelasticity, 2, 1, 1, 1).lowered;
    let scalar = problem(Operator::Mass, 2, 1, 1, 1).lowered;
    let refused = |form, mapping: Mapping| transform(form, &mapping).unwrap_err().to_string();
    let message = refused(&vector, matrix_cells(1, 1, 1));
    assert!(message.contains("a function has components"), "{message}");
    let message = refused(&nonlinear, matrix_cells(1, 1, 1));
    assert!(message.contains("the sum must be linear in the values that are evaluated"), "{message}");
    let message = refused(&scalar, matrix_cells(0, 1, 1));
    assert!(message.contains("the number of sub-groups of a group is 0, needed 1 to 32"), "{message}");
    let message = refused(&scalar, matrix_cells(1, 0, 1));
    assert!(message.contains("the number of groups is 0, needed 1 to 1048576"), "{message}");
    assert_eq!(matrix_sizes(&vector.kernel, &vector.program), None);
    let of_two = matrix_cells(1, 1, 1).with_parts(&[2]).unwrap();
    let message = refused(&scalar, of_two);
    let sum = "the sum of the parts of the degrees of freedom is 2, needed 3, those of a component in a cell";
    assert!(message.contains(sum), "{message}");
}
