//! Even–odd contractions: a matrix that is its own image when it is turned by half, up to the sign,
//! takes sums of opposite values to sums of opposite results, or to differences, with half of the
//! multiplications.

use super::nest::{Steps, cut, expand, fetch};
use crate::problem::Sizes;
use kingpost::ir::{InsnId, Kernel, VarKind};
use kingpost::prelude::{
    AddressSpace, CombineOrbits, DropZeroTerms, FactorUpdate, InterchangeInames, PeelIname, RemoveUnusedVars,
    Schedule, Selection, SetAddressSpace, TransposeArrayAxes,
};
use kingpost::transforms::TransformError;
use std::collections::BTreeSet;

/// A contraction along a line: an update adds `T[result, term]*values[term]`, or `T[term, result]*…`,
/// to a private sum.
#[derive(Clone, Copy, Debug)]
pub struct Contraction<'a> {
    /// The loop over results, and its length.
    pub results: (&'a str, usize),
    /// The loop over terms inside it, and its length.
    pub terms: (&'a str, usize),
    /// What follows the latter in the former, and reads the sum; none where the sum has an axis
    /// for results, and their loop holds that over terms alone.
    pub behind: Option<&'a str>,
    /// The sum of a result.
    pub sum: &'a str,
    /// The values of the line, in a private array that nothing else reads.
    pub values: &'a str,
    /// Whether terms run along the last axis of the matrix.
    pub by_rows: bool,
}

impl Contraction<'_> {
    /// The loop over results that holds the update in the end.
    fn sums(&self) -> String {
        let results = self.results.0;
        if self.behind.is_some() { format!("{results}_sum") } else { results.to_owned() }
    }
}

/// Contracts lines by sums and differences of opposite values, and separates those of results. The
/// blocks of the matrix in this basis that are zero are proved so, and left out.
///
/// # Source
/// Solomonoff 1992, for matrices of differentiation.
pub fn by_halves(s: &mut Schedule, contractions: &[Contraction<'_>]) -> Result<Vec<String>, TransformError> {
    let (vars, loops) = (names_of_vars(s.kernel()), names_of_loops(s.kernel()));
    for c in contractions.iter().filter(|c| c.by_rows) {
        combine(s, c.values, c.terms.1)?;
    }
    for c in contractions {
        results_inside(s, c)?;
    }
    transpose_matrices(s, contractions.iter().filter(|c| c.by_rows))?;
    for c in contractions {
        combine(s, c.sum, c.results.1)?;
    }
    let by_columns = || contractions.iter().filter(|c| !c.by_rows);
    transpose_matrices(s, by_columns())?;
    for c in by_columns() {
        s.apply(InterchangeInames::new(c.terms.0, c.sums()))?;
        combine(s, c.values, c.terms.1)?;
    }
    for c in contractions {
        drop_zeros(s, &updates(s.kernel(), c.sum, None))?;
        without_middle(s, c)?;
    }
    s.apply(RemoveUnusedVars {})?;
    let is_new = |v: &&String| !vars.contains(*v);
    let small: Vec<String> = names_of_vars(s.kernel()).iter().filter(is_new).cloned().collect();
    for name in small {
        let is_small = |v: &kingpost::ir::Variable| {
            matches!(v.kind, VarKind::Table(_)) && v.space == AddressSpace::Global
        };
        if s.kernel().var(&name).is_some_and(|v| is_small(&s.kernel().vars[v])) {
            s.apply(SetAddressSpace::new(name, AddressSpace::Literal))?;
        }
    }
    Ok(names_of_loops(s.kernel()).difference(&loops).cloned().collect())
}

fn names_of_vars(kernel: &Kernel) -> BTreeSet<String> {
    kernel.vars.values().map(|v| v.name.clone()).collect()
}

fn names_of_loops(kernel: &Kernel) -> BTreeSet<String> {
    kernel.inames.values().map(|l| l.name.clone()).collect()
}

/// Takes opposite elements together; the one in the middle is its own opposite.
fn combine(s: &mut Schedule, array: &str, n: usize) -> Steps {
    let opposite = (0..n.div_ceil(2)).map(|k| vec![k as u32, (n - 1 - k) as u32]);
    s.make(CombineOrbits::new(array, opposite.collect::<Vec<_>>())).map(|_| ())
}

/// Gives each result a sum, and adds a term to all of them at a time.
fn results_inside(s: &mut Schedule, c: &Contraction<'_>) -> Steps {
    let results = c.results.0;
    if let Some(behind) = c.behind {
        expand(s, &[c.sum], &[results])?;
        cut(s, &[results], &[(c.terms.0, "sum"), (behind, "out")])?;
    }
    s.apply(InterchangeInames::new(c.sums(), c.terms.0)).map(|_| ())
}

/// The updates of sums whose names begin with this one, in a loop if one is given.
fn updates(kernel: &Kernel, sum: &str, within: Option<&str>) -> Vec<InsnId> {
    let within = within.and_then(|l| kernel.iname(l));
    let of = |(insn, loops): &(InsnId, Vec<_>)| {
        let data = &kernel.insns[*insn];
        kernel.vars[data.lhs.var].name.starts_with(sum)
            && data.update_op().is_some()
            && within.is_none_or(|l| loops.contains(&l))
    };
    kernel.schedule().iter().filter(|i| of(i)).map(|(insn, _)| *insn).collect()
}

/// Exchanges the axes of the tables that the updates multiply by.
fn transpose_matrices<'c>(
    s: &mut Schedule,
    contractions: impl Iterator<Item = &'c Contraction<'c>>,
) -> Steps {
    let kernel = s.kernel();
    let insns = contractions.flat_map(|c| updates(kernel, c.sum, None));
    let reads = insns.flat_map(|insn| kernel.insns[insn].reads().into_iter().map(|a| a.var));
    let tables = reads.map(|v| &kernel.vars[v]).filter(|v| matches!(v.kind, VarKind::Table(_)));
    let tables: BTreeSet<String> = tables.map(|v| v.name.clone()).collect();
    tables.into_iter().try_for_each(|t| s.apply(TransposeArrayAxes::new(t, [1, 0])).map(|_| ()))
}

/// Removes those of the updates that add nothing but zeros.
fn drop_zeros(s: &mut Schedule, updates: &[InsnId]) -> Steps {
    let names: Vec<String> = updates.iter().map(|i| s.kernel().insns[*i].name.clone()).collect();
    for name in names {
        s.attempt(DropZeroTerms::new(name))?; // refused where an entry is not zero
    }
    Ok(())
}

/// Leaves out the differences of a middle and itself.
fn without_middle(s: &mut Schedule, c: &Contraction<'_>) -> Steps {
    let mut nests = vec![(c.terms.0.to_owned(), c.sums())];
    for (odd, results) in [(c.terms.1 % 2 == 1, false), (c.results.1 % 2 == 1, true)] {
        if !odd {
            continue;
        }
        for (terms, result) in nests.clone() {
            let of = if results { &result } else { &terms };
            let last = s.make(PeelIname::last(of, 1))?;
            let inside = updates(s.kernel(), c.sum, Some(last.name()));
            drop_zeros(s, &inside)?;
            if !results {
                nests.push((last.name().to_owned(), format!("{result}_last")));
            }
        }
    }
    Ok(())
}

/// The loops over results of the six contractions with `I`, as the plain kernels have them.
pub const RESULTS: [&str; 6] = ["c1", "b2", "a3", "i4", "j5", "k6"];

/// The six contractions with `I` of BP1.0 and BP3.0: the loop over the results of each, what stands after
/// the sum, and the line that it takes.
pub fn interpolations<'a>(
    sizes: Sizes,
    results: [&'a str; 6],
    lines: [(&'a str, &'a str); 6],
) -> [Contraction<'a>; 6] {
    let (n, m) = (sizes.nodes(), sizes.points());
    let sums =
        [("l1", "r_l1"), ("l2", "r_l2"), ("l3", "r_l3"), ("l4", "r_l4"), ("l5", "r_l5"), ("l6", "r_l6")];
    std::array::from_fn(|k| {
        let (results, (terms, sum), (behind, values)) = (results[k], sums[k], lines[k]);
        let by_rows = k < 3;
        let (of_results, of_terms) = if by_rows { (m, n) } else { (n, m) };
        let behind = Some(behind);
        Contraction { results: (results, of_results), terms: (terms, of_terms), behind, sum, values, by_rows }
    })
}

/// Where fluxes along lines are contracted: by statements and sums of their recipe.
#[derive(Clone, Copy, Debug)]
pub struct Fluxes {
    /// What stands first in the loop of the last direction.
    pub first: &'static str,
    /// What reads the sums along r and s, and these.
    pub sums: [(&'static str, &'static str); 2],
}

/// The six contractions with `D` of lines of `n` nodes, where fluxes replace derivatives;
/// `column` is what is differentiated along t. Returns the new loops, too.
pub fn derivatives(
    s: &mut Schedule,
    n: usize,
    column: &str,
    fluxes: Fluxes,
) -> Result<([Contraction<'static>; 6], [&'static str; 5]), TransformError> {
    s.apply(FactorUpdate::new("dt_t", ["c_t"]).into_temporary("r_mt"))?;
    cut(s, &["c_t"], &[(fluxes.first, "rest"), ("mt", "flux")])?;
    for (array, at, name, of, along) in
        [(column, "i_t", "line_t", "r_lt_update", "l_t"), ("wt", "a_t", "line_c", "dt_t", "m_t")]
    {
        let line = fetch(array, at, AddressSpace::Private, name, &[along]);
        s.apply(line.only_in(Selection::Insn(of.into())))?;
    }
    let [(behind_r, r), (behind_s, along_s)] = fluxes.sums;
    let contractions = [
        ("i", "lr", Some("dr"), "r_lr", "line_r"),
        ("j_s", "ls", Some("ds"), "r_ls", "line_s"),
        ("k_t", "lt", Some("dt"), "r_lt", "line_t"),
        ("c_t_flux", "mt", None, "r_mt", "line_c"),
        ("a", "mr", Some(behind_r), r, "line_a"),
        ("b_s", "ms", Some(behind_s), along_s, "line_b"),
    ];
    let of = |k: usize| {
        let (results, terms, behind, sum, values) = contractions[k];
        Contraction { results: (results, n), terms: (terms, n), behind, sum, values, by_rows: k < 3 }
    };
    Ok((std::array::from_fn(of), ["l_t", "m_t", "c_t_rest", "c_t_flux", "c_t_sum"]))
}

/// Of recipes that add fluxes to a buffered result.
pub const BUFFERED: Fluxes = Fluxes { first: "zero", sums: [("store_r_zr", "r_zr"), ("store_r_zs", "r_zs")] };
