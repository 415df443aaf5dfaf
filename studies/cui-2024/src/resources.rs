//! What the compiler of a card makes of lines: registers, spills, operations. No card is needed.

use crate::measure::MeasureError;
use kingpost::runtime::cuda::nvrtc;
use kingpost::runtime::{Backend, Cache, Optimisation};
use kingpost_multigrid::kernels::Operation;
use kingpost_multigrid::schedules::{Structure, program};
use kingpost_multigrid::{Dimension, Element, MultigridError, Precision};

/// Resident groups, separate terms, atomic corrections and patches one after the other of a form of lines.
type Form = (Option<u32>, bool, bool, Option<u32>);

const FORMS: [Form; 12] = [
    (None, true, true, None),
    (None, false, true, None),
    (None, true, true, AHEAD),
    (None, false, false, None),
    (None, true, false, None),
    (Some(3), true, true, None),
    (Some(2), true, true, None),
    (Some(2), true, true, AHEAD),
    (Some(2), false, false, None),
    (Some(3), false, false, None),
    (Some(2), true, false, None),
    (Some(3), true, false, None),
];

/// Forms of lines that are tried of an element, those with its default number of patches first.
#[must_use]
pub fn lines(element: Element) -> Vec<Structure> {
    let Structure::Lines { patches: default, .. } = Structure::fastest_lines(element) else {
        return Vec::new(); // never: they are lines
    };
    let patches = [default].into_iter().chain([1, 2, 4].into_iter().filter(|n| *n != default));
    let forms = patches.flat_map(|patches| FORMS.map(|form| (patches, form)));
    let of = |(patches, (resident_groups, separate_terms, atomic, ahead))| Structure::Lines {
        patches,
        resident_groups,
        separate_terms,
        atomic,
        ahead,
    };
    forms.map(of).collect()
}

/// Forms of the blended kernel that are tried of an element, the fastest that is known first.
#[must_use]
pub fn blended(element: Element) -> Vec<Structure> {
    let hopper = (Backend::Cuda, "sm_90");
    let fastest = Structure::of(hopper, Operation::SmoothBlended, element, Precision::Double);
    let resident = [None, Some(3), Some(4), Some(5)];
    let forms = [1, 2, 4].into_iter().flat_map(|patches| resident.map(|groups| (patches, groups)));
    let of = |(patches, resident_groups)| Structure::Lines {
        patches,
        resident_groups,
        separate_terms: false,
        atomic: false,
        ahead: None,
    };
    let by_planes = element.dimension == Dimension::Three && (5..=7).contains(&element.degree);
    let planes = resident.into_iter().filter(|_| by_planes);
    let planes = planes.map(|resident_groups| Structure::Planes { resident_groups });
    let others = forms.map(of).chain(planes).filter(|form| *form != fastest);
    [fastest].into_iter().chain(others).collect()
}

/// Patches one after the other of the forms with copies ahead.
const AHEAD: Option<u32> = Some(4);

/// Forms of matrix instructions that are tried of an element: even and odd parts or nodes,
/// sub-groups, resident groups, patches copied ahead.
#[must_use]
pub fn instructions(element: Element) -> Vec<Structure> {
    let pairs = (2 * element.degree as u32 + 1).div_ceil(8) * 4;
    let sub_groups = [pairs, pairs / 2, pairs / 4];
    let resident = [Some(2), None, Some(3), Some(4)];
    let parities: &[bool] = if pairs == 8 { &[true, false] } else { &[false] };
    let mut all = Vec::new();
    for (parities, sub_groups) in parities.iter().flat_map(|p| sub_groups.map(|n| (*p, n))) {
        for resident_groups in resident {
            let of = |ahead| Structure::Instructions { sub_groups, parities, resident_groups, ahead };
            all.push(of(None));
            if resident_groups == Some(2) {
                all.extend([AHEAD, Some(16)].map(of));
            }
        }
    }
    all
}

/// A kernel as it is compiled.
pub type Job = (Operation, Element, Structure, Precision);

/// What a hierarchy of each element runs on an architecture in both precisions and, if asked for, every form of lines.
#[must_use]
pub fn jobs(elements: &[Element], arch: &str, with_lines: bool) -> Vec<Job> {
    let mut all = Vec::new();
    for element in elements {
        for precision in [Precision::Double, Precision::Single] {
            let of = |o: &Operation| Structure::of((Backend::Cuda, arch), *o, *element, precision);
            let best = |o: &Operation| (*o, *element, of(o), precision);
            all.extend(Operation::ALL.iter().map(best));
        }
        if with_lines {
            all.extend(
                lines(*element)
                    .into_iter()
                    .map(|form| (Operation::Smooth, *element, form, Precision::Double)),
            );
        }
    }
    all
}

/// Compiles kernels into the cache, several at a time.
#[must_use]
pub fn compile_all(jobs: &[Job], arch: &str, threads: usize) -> Vec<Result<(), MeasureError>> {
    let one = |(operation, element, structure, precision): &Job| -> Result<(), MeasureError> {
        let code = program(*operation, *element, *structure, *precision, Backend::Cuda)?;
        nvrtc::compile_program(arch, &code, Optimisation::Full, &Cache::from_environment())?;
        Ok(())
    };
    let threads = threads.max(1);
    std::thread::scope(|scope| {
        // in turn: neighbours take equally long
        let share = |first: usize| jobs.iter().skip(first).step_by(threads);
        let threads: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || share(first).map(one).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
    })
}

/// A row of the table: what `sm_90` gets of the fused kernel.
///
/// # Errors
/// A kernel that is not made or not compiled.
pub fn row(element: Element, structure: Structure) -> Result<String, MeasureError> {
    let code = program(Operation::Smooth, element, structure, Precision::Double, Backend::Cuda)
        .map_err(MeasureError::from)?;
    let object = nvrtc::compile_for("sm_90", &code.entry, &code.source, &Cache::from_environment())
        .map_err(MultigridError::from)?;
    let count = |names: &[&str]| names.iter().map(|name| object.ptx.matches(name).count()).sum::<usize>();
    let fused = count(&["fma.rn.f64"]);
    let others = count(&["mul.f64", "mul.rn.f64", "add.f64", "add.rn.f64", "sub.f64", "sub.rn.f64"]);
    let Structure::Lines { patches, resident_groups, separate_terms, atomic, ahead } = structure else {
        return Ok(String::new());
    };
    let resident = resident_groups.map_or("–".into(), |groups| groups.to_string());
    let mut terms = String::from(if separate_terms { "separate" } else { "together" });
    if atomic {
        terms += ", atomic";
    }
    if let Some(patches) = ahead {
        terms += &format!(", {patches} in turn");
    }
    let resources: Vec<String> = object
        .resources
        .iter()
        .map(|r| format!("{} | {}", r.registers, r.spill_stores + r.spill_loads))
        .collect();
    Ok(format!(
        "| {} | {patches} | {resident} | {terms} | {fused} | {others} | {} | {} |\n",
        element.degree,
        resources.join(" | "),
        code.plan.local_bytes,
    ))
}

/// The head of the table.
pub const HEAD: &str = "| k | patches | resident groups | terms | fused FP64 operations | other | registers | bytes spilled and reloaded | bytes of local memory |\n|--:|--:|--:|--|--:|--:|--:|--:|--:|\n";
