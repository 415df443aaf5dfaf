//! Lines of the smoother that blends values at the boundary of a patch: [`Variant::Blended`].
//!
//! [`Variant::Blended`]: crate::kernels::Variant::Blended

use crate::halves::{Halves, halve};
use crate::lines::{in_patches, read_lines, share};
use crate::plan::Contraction;
use crate::{Dimension, Element, Steps};
use kingpost_ir::kernel::VarKind;
use kingpost_ir::{AddressSpace, AxisTag, Variable};
use kingpost_primitives::primitives::{
    AliasStorage, ContractArray, RemoveUnusedVars, SetAddressSpace, ShiftIname, Tag, TransposeArrayAxes,
};
use kingpost_primitives::{Schedule, ScheduleSteps, TransformError};

/// Work-items that run together.
const SUB_GROUP: i64 = 32;

/// Two nests over the same lines, the array between them, and its axes along lanes, one after the
/// other.
type Fused = (&'static [&'static str], &'static [&'static str], (&'static str, &'static [u32]));

/// What the kernel has of this structure.
struct Blend {
    /// Products on faces, and then those on the inner nodes.
    contractions: &'static [Contraction],
    /// Neighbouring nests, that of what a line reads first.
    fused: &'static [Fused],
    /// Nests of faces, whose loops become one.
    faces: &'static [&'static [&'static str]],
    /// Loops over lines of faces, which become one: those of different tables.
    of_faces: &'static [&'static [&'static str]],
    /// Products with what takes nodes and ends to eigenvectors.
    to_modes: &'static [Halves],
    /// Products with eigenvectors.
    halves: &'static [Halves],
    /// Arrays that take turns in a buffer.
    turns: &'static [&'static [&'static str]],
}

const IN_TWO: Blend = Blend {
    contractions: &[
        ("i_gj", &["e_gj"], &["fj"]),
        ("j_gi", &["e_gi"], &["fi"]),
        ("j_r1", &["i_r1"], &[]),
        ("j_2", &["i_2"], &[]),
        ("i_r0", &["j_r0"], &[]),
        ("i_3", &["j_3"], &[]),
        ("i_4", &["j_4"], &[]),
        ("j_5", &["i_5"], &["s2"]),
    ],
    fused: &[
        (&["i_r1"], &["i_2"], ("r1", &[1])),
        (&["j_r0"], &["j_3"], ("r0", &[0])),
        (&["j_3"], &["j_4"], ("s1", &[0])),
    ],
    faces: &[&["e_j", "i_j"], &["e_i", "j_i"]],
    of_faces: &[&["e_gj"], &["e_gi"]],
    to_modes: &[Halves { results: "j_gi", terms: "l_gi", behind: "on_ends", nodes: Some("line_fi_j_gi") }],
    halves: &[
        Halves { results: "j_2", terms: "l_2", behind: "to_modes1", nodes: Some("r1") },
        Halves { results: "i_3", terms: "l_3", behind: "to_modes0", nodes: Some("r0") },
        Halves { results: "i_4", terms: "l_4", behind: "from_modes0", nodes: None },
        Halves { results: "j_5", terms: "l_5", behind: "replace", nodes: None },
    ],
    turns: &[&["s0", "s2"]],
};

const IN_THREE: Blend = Blend {
    contractions: &[
        ("i_mk", &["e_mk", "j_mk"], &["fk"]),
        ("k_mj", &["e_mj", "i_mj"], &["fj"]),
        ("j_mi", &["e_mi", "k_mi"], &["fi"]),
        ("j_gk", &["e_gk", "i_gk"], &["mk"]),
        ("i_gj", &["e_gj", "k_gj"], &["mj"]),
        ("k_gi", &["e_gi", "j_gi"], &["mi"]),
        ("k_r2", &["j_r2", "i_r2"], &[]),
        ("k_3", &["j_3", "i_3"], &[]),
        ("j_r1", &["k_r1", "i_r1"], &[]),
        ("j_4", &["k_4", "i_4"], &[]),
        ("i_r0", &["k_r0", "j_r0"], &[]),
        ("i_5", &["k_5", "j_5"], &[]),
        ("i_6", &["k_6", "j_6"], &[]),
        ("j_7", &["k_7", "i_7"], &["s3"]),
        ("k_8", &["j_8", "i_8"], &["s4"]),
    ],
    fused: &[
        (&["j_r2", "i_r2"], &["j_3", "i_3"], ("r2", &[1, 1])),
        (&["k_r1", "i_r1"], &["k_4", "i_4"], ("r1", &[0, 1])),
        (&["k_r0", "j_r0"], &["k_5", "j_5"], ("r0", &[0, 0])),
        (&["k_5", "j_5"], &["k_6", "j_6"], ("s2", &[0, 0])),
    ],
    faces: &[&["e_k", "j_k", "i_k"], &["e_j", "k_j", "i_j"], &["e_i", "k_i", "j_i"]],
    of_faces: &[
        &["e_mk", "j_mk"],
        &["e_mj", "i_mj"],
        &["e_mi", "k_mi"],
        &["e_gk", "i_gk"],
        &["e_gj", "k_gj"],
        &["e_gi", "j_gi"],
    ],
    to_modes: &[
        Halves { results: "k_mj", terms: "l_mj", behind: "half_rows", nodes: Some("line_fj_k_mj") },
        Halves { results: "j_mi", terms: "l_mi", behind: "half_ends", nodes: Some("line_fi_j_mi") },
        Halves { results: "k_gi", terms: "l_gi", behind: "on_ends", nodes: Some("line_mi_k_gi") },
    ],
    halves: &[
        Halves { results: "k_3", terms: "l_3", behind: "to_modes2", nodes: Some("r2") },
        Halves { results: "j_4", terms: "l_4", behind: "to_modes1", nodes: Some("r1") },
        Halves { results: "i_5", terms: "l_5", behind: "to_modes0", nodes: Some("r0") },
        Halves { results: "i_6", terms: "l_6", behind: "from_modes0", nodes: None },
        Halves { results: "j_7", terms: "l_7", behind: "from_modes1", nodes: None },
        Halves { results: "k_8", terms: "l_8", behind: "replace", nodes: None },
    ],
    turns: &[&["fj", "gk"], &["fi", "gj"], &["mk", "s0", "s1", "s3", "s4"]],
};

/// A work-item for each line of inner nodes of some patches; others take faces in rounds.
pub(crate) fn map(s: &mut Schedule, element: Element, blocks: &[String], patches: u32) -> Steps {
    let blend = match element.dimension {
        Dimension::Two => &IN_TWO,
        Dimension::Three => &IN_THREE,
    };
    lines_inside(s, blend)?;
    let local = share(s, 2)?; // lines have one axis
    let k = element.degree;
    if k > 1 {
        s.apply(TransposeArrayAxes::new("S", [1, 0]))?;
        blend.to_modes.iter().try_for_each(|halves| halve(s, *halves, (k + 1, k)))?;
        blend.halves.iter().try_for_each(|halves| halve(s, *halves, (k, k)))?;
        s.apply(RemoveUnusedVars {})?;
        places_as_literals(s)?;
    }
    let mut axes = lanes(s, blend, element)?;
    if let Some(block) = blocks.last().filter(|_| patches > 1) {
        let [group, inner] = in_patches(s, block, patches, &local)?;
        axes.push(vec![inner]);
        s.rename_loop(group, block.as_str())?;
    }
    for turn in blend.turns {
        s.apply(AliasStorage::new(turn.iter().copied(), format!("in_turn_{}", turn[0])))?;
    }
    for (axis, loops) in axes.into_iter().enumerate() {
        s.apply(Tag::all(loops, AxisTag::Local(axis as u8)))?;
    }
    let rest = s.kernel().inames.values().filter(|i| i.tag == AxisTag::Sequential).map(|i| i.name.clone());
    let inside: Vec<String> = rest.filter(|name| !blocks.contains(name)).collect();
    s.apply(Tag::all(inside, AxisTag::Unrolled)).map(drop)
}

/// Loops along lines inside those over them, and what a line reads in registers.
fn lines_inside(s: &mut Schedule, blend: &Blend) -> Steps {
    for (along, lanes, _) in blend.contractions {
        s.reorder(lanes.iter().copied().chain([*along]))?;
    }
    for (first, second, (array, axes)) in blend.fused {
        for ((a, b), axis) in first.iter().zip(*second).zip(*axes) {
            s.fuse(*a, *b)?;
            s.apply(ContractArray::new(*array, *axis))?;
        }
        first.iter().zip(*second).try_for_each(|(a, b)| s.rename_loop(*a, *b).map(drop))?;
    }
    read_lines(s, blend.contractions)
}

/// Tables of places and signs as numbers of the code: their indices are known where loops are
/// written out.
fn places_as_literals(s: &mut Schedule) -> Steps {
    let is_of_orbits = |v: &&Variable| {
        matches!(v.kind, VarKind::Table(_)) && v.space == AddressSpace::Global && v.name != "inverses"
    };
    let tables: Vec<String> = s.kernel().vars.values().filter(is_of_orbits).map(|v| v.name.clone()).collect();
    tables.into_iter().try_for_each(|t| s.apply(SetAddressSpace::new(t, AddressSpace::Literal)).map(drop))
}

/// The loops along each axis of a group, as many as inner nodes along a line.
fn lanes(s: &mut Schedule, blend: &Blend, element: Element) -> Result<Vec<Vec<String>>, TransformError> {
    let (side, nodes) = (2 * element.degree as i64 - 1, 2 * element.degree as i64 + 1);
    let axes = element.dimension.axes() - 1;
    let items = side.pow(axes as u32);
    // tables differ, so that lines of another pair of faces are those of other sub-groups, if there
    // are any
    let has_room = axes == 2 && 2 * SUB_GROUP + 2 * nodes <= items;
    let apart = |pair: usize| if has_room { SUB_GROUP * (pair % 3) as i64 } else { 0 };
    let of_faces = blend.of_faces.iter().enumerate().map(|(pair, nest)| (nest, apart(pair)));
    let mut lanes = vec![Vec::new(); axes];
    for (nest, first) in blend.faces.iter().map(|nest| (nest, 0)).chain(of_faces) {
        let [outer, rest @ ..] = nest else { continue };
        let mut all = String::from(*outer);
        for l in rest {
            all = s.join(all, *l)?.into();
        }
        if first > 0 {
            s.apply(ShiftIname::new(&all, first))?;
        }
        let [_, item] = s.split_as(all, items, ["rounds", "item"])?;
        if axes == 1 {
            lanes[0].push(item.into());
        } else {
            let [row, column] = s.split_as(item, side, ["row", "column"])?;
            lanes[1].push(row.into());
            lanes[0].push(column.into());
        }
    }
    let of_nodes = blend.contractions.iter().filter(|(_, over, _)| !blend.of_faces.contains(over));
    for (_, over, _) in of_nodes {
        for (axis, l) in over.iter().rev().enumerate().filter(|(_, l)| s.kernel().iname(l).is_some()) {
            lanes[axis].push((*l).to_owned());
        }
    }
    Ok(lanes)
}
