//! Which step wrote which line.

use crate::data::Change;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The lines of a text after a step, told from those before it. Indentation alone is no change: a
/// loop that is put around a statement leaves it what it is.
pub fn change(before: Option<&Change>, text: &str, step: usize) -> Change {
    let lines: Vec<String> = text.trim_end_matches('\n').split('\n').map(str::to_owned).collect();
    let Some(before) = before else {
        let since = vec![step; lines.len()];
        return Change { lines, since, removed: Vec::new() };
    };
    let bare = |lines: &[String]| lines.iter().map(|l| l.trim().to_owned()).collect::<Vec<_>>();
    let (old, new) = (bare(&before.lines), bare(&lines));
    let mut since = vec![step; lines.len()];
    let mut removed = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        match op {
            DiffOp::Equal { old_index, new_index, len } => {
                since[new_index..new_index + len].copy_from_slice(&before.since[old_index..old_index + len]);
            }
            DiffOp::Delete { .. } | DiffOp::Replace { .. } => {
                removed.push((op.new_range().start, before.lines[op.old_range()].to_vec()));
            }
            DiffOp::Insert { .. } => {}
        }
    }
    Change { lines, since, removed }
}

#[cfg(test)]
mod tests {
    use super::change;

    #[test]
    fn lines_keep_the_step_that_wrote_them() {
        let first = change(None, "a\n  b\nc\n", 0);
        let second = change(Some(&first), "a\n    b\nx\nc\n", 1);
        assert_eq!(second.since, [0, 0, 1, 0]);
        assert_eq!(second.removed, []);
        let third = change(Some(&second), "a\ny\nc\n", 2);
        assert_eq!(third.since, [0, 2, 0]);
        assert_eq!(third.removed, [(1, vec!["    b".to_owned(), "x".to_owned()])]);
    }
}
