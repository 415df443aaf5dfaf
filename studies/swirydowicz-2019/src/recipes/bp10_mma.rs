//! BP1.0 by FP64 matrix instructions on even and odd parts: `I` is its own image when it is turned
//! by half, so that in this basis it has two blocks, of at most eight rows and columns up to N =
//! 14.

use super::nest::{Steps, cut, expand, fetch, realise};
use crate::problem::Sizes;
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{
    AddressSpace, AliasStorage, AxisTag, DecomposeParity, FixArgument, PrecomputeRule, RemoveUnusedVars,
    Schedule, SetAddressSpace, SetResidentGroups, StageValue,
};
use kingpost::transforms::instruction_lines::{InstructionLines, pad_lines};

pub const IDEA: &str = "contractions of even and odd parts by FP64 matrix instructions";

/// Places for the parts of a parity: rows of half a tile of sixteen.
pub const HALF: usize = 8;

/// Arrays of one length along an axis that depend on each other there, from the innermost axis on,
/// and whether their parts are halves, so that values are sums of parts.
const LINES: [(&[(&str, u32)], bool); 9] = [
    (&[("r_u", 2), ("t1", 2), ("t2", 2)], false),
    (&[("v", 2), ("t3", 2)], false),
    (&[("t4", 2), ("t5", 2), ("r_y", 2)], true),
    (&[("r_u", 1), ("t1", 1)], false),
    (&[("t2", 1), ("v", 1), ("t3", 1), ("t4", 1)], false),
    (&[("t5", 1), ("r_y", 1)], true),
    (&[("r_u", 0)], false),
    (&[("t1", 0), ("t2", 0), ("v", 0), ("t3", 0), ("t4", 0), ("t5", 0)], false),
    (&[("r_y", 0)], true),
];

/// A contraction.
struct Contraction {
    /// Its loop over terms.
    terms: &'static str,
    /// Its nest, with the axis of lines innermost.
    nest: [&'static str; 3],
    /// The axes of arrays in the order of the nest.
    axes: [u32; 3],
    /// What stands after the sum.
    behind: &'static str,
    /// The array in local memory that it reads.
    read: Option<&'static str>,
}

const fn contraction(
    terms: &'static str,
    nest: [&'static str; 3],
    axes: [u32; 3],
    behind: &'static str,
    read: Option<&'static str>,
) -> Contraction {
    Contraction { terms, nest, axes, behind, read }
}

const CONTRACTIONS: [Contraction; 6] = [
    contraction("l1", ["j1", "i1", "c1"], [1, 2, 0], "s1", None),
    contraction("l2", ["c2", "i2", "b2"], [0, 2, 1], "s2", Some("t1")),
    contraction("l3", ["c3", "b3", "a3"], [0, 1, 2], "compute_v", Some("t2")),
    contraction("l4", ["c4", "b4", "i4"], [0, 1, 2], "s4", None),
    contraction("l5", ["c5", "i5", "j5"], [0, 2, 1], "s5", Some("t4")),
    contraction("l6", ["j6", "i6", "k6"], [1, 2, 0], "set_r_y", Some("t5")),
];

/// Nests of pairs, with lines innermost.
const PAIRS: [[&str; 3]; 3] = [["j_u", "i_u", "k_u"], ["c3_w", "b3_w", "a3_w"], ["j6_y", "i6_y", "k6_y"]];

/// Arrays in local memory.
const LOCAL: [&str; 4] = ["t1", "t2", "t4", "t5"];

pub fn steps(s: &mut Schedule, sizes: Sizes) -> Steps {
    decompose(s, sizes)?;
    let terms = CONTRACTIONS.each_ref().map(|c| c.terms);
    realise(s, &terms)?;
    s.apply(RemoveUnusedVars {})?;
    let mut lines = InstructionLines::of_parities(HALF as i64);
    let mut held = vec![("r_u".to_owned(), [1, 2, 0]), ("v".into(), [0, 1, 2]), ("t3".into(), [0, 1, 2])];
    held.push(("r_y".into(), [1, 2, 0]));
    for Contraction { terms, nest, axes, behind, read } in CONTRACTIONS {
        let natural = inverse(nest, axes);
        let sum = format!("r_{terms}");
        expand(s, &[&sum], &natural)?;
        cut(s, &natural, &[(terms, "sum"), (behind, "out")])?;
        held.push((sum, axes));
        if let Some(array) = read {
            let names = ["p", "l", "n"].map(|axis| format!("{axis}_{array}"));
            let line = format!("line_{array}");
            let loops = inverse(names.each_ref().map(String::as_str), axes);
            s.apply(fetch(array, "e", AddressSpace::Private, &line, &loops))?;
            lines.deal(s, names)?;
            held.push((line, axes));
        }
        lines.deal(s, nest)?;
        lines.deal(s, nest.map(|l| format!("{l}_out")))?;
        lines.contract(s, nest.map(|l| format!("{l}_sum")), terms)?;
    }
    PAIRS.into_iter().try_for_each(|nest| lines.deal_pairs(s, nest))?;
    held.iter().try_for_each(|(array, axes)| lines.hold(s, array, *axes))?;
    LOCAL.iter().try_for_each(|a| s.apply(SetAddressSpace::new(*a, AddressSpace::Local)).map(drop))?;
    s.tag("e", AxisTag::Group(0))?;
    lines.place(s)?;
    LOCAL.iter().try_for_each(|array| pad_lines(s, array, 0))?;
    s.apply(AliasStorage::new(LOCAL, "s_1"))?;
    s.apply(SetResidentGroups::new(3)).map(drop)
}

/// A nest in the order of axes that `axes` takes to this one.
fn inverse(nest: [&str; 3], axes: [u32; 3]) -> [&str; 3] {
    let mut natural = nest;
    for (l, axis) in nest.into_iter().zip(axes) {
        natural[axis as usize] = l;
    }
    natural
}

/// Keeps parts of all arrays along all axes.
fn decompose(s: &mut Schedule, sizes: Sizes) -> Steps {
    s.apply(FixArgument::real("I", sizes.precision.rounded(sizes.interpolation())))?;
    s.apply(fetch("u", "e", AddressSpace::Private, "r_u", &["k_u", "j_u", "i_u"]))?;
    let declaration = format!("v(c, b, a) := sum(l_v in 0..{}: I[a, l_v]*t2[c, b, l_v])", sizes.nodes());
    s.apply(PrecomputeRule::new(declaration, "a3", AddressSpace::Private).into_temporary("v"))?;
    expand(s, &["v"], &["c3", "b3", "a3"])?;
    cut(s, &["c3", "b3", "a3"], &[("s3", "w")])?;
    s.apply(StageValue::new("s6", "r_y"))?;
    expand(s, &["r_y"], &["k6", "j6", "i6"])?;
    cut(s, &["k6", "j6", "i6"], &[("s6", "y")])?;
    LINES.into_iter().try_for_each(|(lines, halved)| {
        let of = DecomposeParity::new(lines.iter().copied(), HALF as u32);
        s.apply(if halved { of.halved() } else { of }).map(drop)
    })
}
