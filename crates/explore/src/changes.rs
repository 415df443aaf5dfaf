//! Which step wrote which line.

use crate::data::Change;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::collections::BTreeMap;

/// A text before a step, and the statements that each of its lines is for, by name.
pub struct Keyed<'a> {
    /// The text.
    pub text: &'a Change,
    /// The statements; none where the text is that of a kernel.
    pub keys: &'a [Vec<String>],
}

/// The lines of a text after a step, told from those before it. Indentation alone is no change: a
/// loop that is put around a statement leaves it what it is. A line that stands elsewhere is the same
/// line if it is for the same statements, of which `keys` has those of each line.
pub fn change(before: Option<Keyed<'_>>, text: &str, keys: &[Vec<String>], step: usize) -> Change {
    let lines: Vec<String> = text.trim_end_matches('\n').split('\n').map(str::to_owned).collect();
    let Some(Keyed { text: before, keys: old_keys }) = before else {
        let since = vec![step; lines.len()];
        return Change { lines, since, removed: Vec::new() };
    };
    let bare = |lines: &[String]| lines.iter().map(|l| l.trim().to_owned()).collect::<Vec<_>>();
    let (old, new) = (bare(&before.lines), bare(&lines));
    let mut since = vec![step; lines.len()];
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        match op {
            DiffOp::Equal { old_index, new_index, len } => {
                since[new_index..new_index + len].copy_from_slice(&before.since[old_index..old_index + len]);
            }
            DiffOp::Delete { .. } | DiffOp::Replace { .. } | DiffOp::Insert { .. } => {
                gone.extend(op.old_range().map(|k| (op.new_range().start, k)));
                come.extend(op.new_range());
            }
        }
    }
    let of = |keys: &[Vec<String>], k: usize| keys.get(k).filter(|key| !key.is_empty()).cloned();
    let mut moved: BTreeMap<(Vec<String>, &str), Vec<usize>> = BTreeMap::new();
    for (_, k) in gone.iter().rev() {
        if let Some(key) = of(old_keys, *k) {
            moved.entry((key, &old[*k])).or_default().push(*k);
        }
    }
    let mut found = Vec::new();
    for k in come {
        let was = of(keys, k).and_then(|key| moved.get_mut(&(key, new[k].as_str()))?.pop());
        if let Some(was) = was {
            since[k] = before.since[was];
            found.push(was);
        }
    }
    let mut removed: Vec<(usize, Vec<String>)> = Vec::new();
    for (place, k) in gone.into_iter().filter(|(_, k)| !found.contains(k)) {
        let line = before.lines[k].clone();
        match removed.last_mut() {
            Some((at, all)) if *at == place => all.push(line),
            Some(_) | None => removed.push((place, vec![line])),
        }
    }
    Change { lines, since, removed }
}

#[cfg(test)]
mod tests {
    use super::{Keyed, change};

    #[test]
    fn lines_keep_the_step_that_wrote_them() {
        let plain = |text| Keyed { text, keys: &[] };
        let first = change(None, "a\n  b\nc\n", &[], 0);
        let second = change(Some(plain(&first)), "a\n    b\nx\nc\n", &[], 1);
        assert_eq!(second.since, [0, 0, 1, 0]);
        assert_eq!(second.removed, []);
        let third = change(Some(plain(&second)), "a\ny\nc\n", &[], 2);
        assert_eq!(third.since, [0, 2, 0]);
        assert_eq!(third.removed, [(1, vec!["    b".to_owned(), "x".to_owned()])]);
    }

    #[test]
    fn lines_of_the_same_statement_may_move() {
        let keys = |names: [&str; 3]| names.map(|name| vec![name.to_owned()]);
        let first = change(None, "x = 0;\ny = 1;\ny = 1;\n", &keys(["s", "t", "u"]), 0);
        let old = keys(["s", "t", "u"]);
        let before = Keyed { text: &first, keys: &old };
        let second = change(Some(before), "y = 1;\ny = 1;\nx = 0;\n", &keys(["t", "v", "s"]), 1);
        assert_eq!(
            second.lines.len() - second.since.iter().filter(|s| **s == 0).count(),
            second.removed.len()
        );
        assert_eq!(second.since[2], 0, "`s` is where it was written");
    }
}
