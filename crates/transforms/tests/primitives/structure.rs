//! Random steps of the loop structure, for the property test.

use purlin_ir::{Affine, Atom, InameId, Kernel, Node};
use purlin_transforms::Step;
use purlin_transforms::primitives::{
    DistributeLoop, FuseLoops, JoinInames, MoveInsns, PeelIname, Rename, ReverseIname, ShiftIname, SkewIname,
};

/// Bodies of the program with the loop they belong to (none: the kernel itself).
fn bodies(kernel: &Kernel) -> Vec<(Option<String>, Vec<String>)> {
    fn visit(
        kernel: &Kernel,
        of: Option<String>,
        body: &[Node],
        found: &mut Vec<(Option<String>, Vec<String>)>,
    ) {
        found.push((of, body.iter().map(|node| name(kernel, node)).collect()));
        for node in body {
            if let Node::Loop(iname, body) = node {
                visit(kernel, Some(kernel.inames[*iname].name.clone()), body, found);
            }
        }
    }
    let mut found = Vec::new();
    visit(kernel, None, &kernel.body, &mut found);
    found
}

fn name(kernel: &Kernel, node: &Node) -> String {
    match node {
        Node::Insn(insn) => kernel.insns[*insn].name.clone(),
        Node::Loop(iname, _) => kernel.inames[*iname].name.clone(),
    }
}

fn pick<T: Clone>(from: &[T], k: u8) -> Option<T> {
    from.get(usize::from(k) % from.len().max(1)).cloned()
}

/// Two neighbouring loops, over the same values where there are such, or two names that are none.
fn neighbours(kernel: &Kernel, which: u8) -> (String, String) {
    let alike = |a: InameId, b: InameId| {
        let to_b = |atom: &Atom| (*atom == Atom::Iname(a)).then(|| Affine::iname(b));
        kernel.inames[a].domain.substitute(&to_b) == kernel.inames[b].domain
    };
    let (mut same, mut other) = (Vec::new(), Vec::new());
    for (_, names) in bodies(kernel) {
        for pair in names.windows(2) {
            let (Some(a), Some(b)) = (kernel.iname(&pair[0]), kernel.iname(&pair[1])) else { continue };
            let list = if alike(a, b) { &mut same } else { &mut other };
            list.push((pair[0].clone(), pair[1].clone()));
        }
    }
    let pairs = if same.is_empty() { other } else { same };
    pick(&pairs, which).unwrap_or_else(|| ("nowhere".into(), "elsewhere".into()))
}

/// A step that has a chance on this kernel; `nested` are the loops with exactly one loop inside.
pub fn draw(kernel: &Kernel, nested: &[(String, String)], [kind, which, how]: [u8; 3]) -> Step {
    let inames: Vec<_> = kernel.inames.values().map(|i| i.name.clone()).collect();
    let iname = pick(&inames, which).unwrap_or_default();
    let several: Vec<_> = bodies(kernel).into_iter().filter(|(_, names)| names.len() > 1).collect();
    let small = i64::from(how % 7) - 2;
    match kind % 11 {
        0..2 => {
            let in_loops: Vec<_> = several.iter().filter(|(of, _)| of.is_some()).cloned().collect();
            let (of, names) = pick(&in_loops, which).unwrap_or_default();
            let part = names.get(1 + usize::from(how) % names.len().max(2).saturating_sub(1)).cloned();
            DistributeLoop::new(of.unwrap_or(iname), [part.unwrap_or_default()]).into()
        }
        2 | 10 => {
            let (first, second) = neighbours(kernel, which);
            FuseLoops::new(first, second).into()
        }
        3 => {
            let (outer, inner) = pick(nested, which).unwrap_or((iname, "elsewhere".into()));
            JoinInames::new(outer, inner).into()
        }
        4 => {
            let (_, names) = pick(&several, which).unwrap_or_default();
            let moved = pick(&names, how).unwrap_or_default();
            let target = pick(&names, how.wrapping_add(1 + which % 2)).unwrap_or_default();
            if how < 128 { MoveInsns::before([moved], target) } else { MoveInsns::after([moved], target) }
                .into()
        }
        5 if how < 128 => PeelIname::first(iname, small).into(),
        5 => PeelIname::last(iname, small).into(),
        6 => {
            let to = ["renamed", "n", "other", "sum"][usize::from(how % 4)];
            match how % 3 {
                0 => Rename::iname(iname, to).into(),
                1 => {
                    let insns: Vec<_> = kernel.insns.values().map(|i| i.name.clone()).collect();
                    Rename::insn(pick(&insns, which).unwrap_or_default(), to).into()
                }
                _ => {
                    let vars: Vec<_> = kernel.vars.values().map(|v| v.name.clone()).collect();
                    Rename::var(pick(&vars, which).unwrap_or_default(), to).into()
                }
            }
        }
        7 => ReverseIname::new(iname).into(),
        8 => ShiftIname::new(iname, small).and(i64::from(how % 3) - 1, "n").into(),
        _ => {
            let (outer, inner) = pick(nested, which).unwrap_or((iname, "elsewhere".into()));
            SkewIname::new(inner, outer, small).into()
        }
    }
}
