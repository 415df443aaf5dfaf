//! The code of a kernel before it is printed.

use crate::ast::{CodePiece, Intrinsic};
use crate::function::Function;
use crate::notes::Note;
use crate::plan::Precondition;
use crate::target::Banks;
use kingpost_ir::SubGroup;

/// The code of a kernel for a target, before it is printed: what statistics count.
#[derive(Clone, Debug)]
pub struct Code {
    /// The function, target's loops and declarations included.
    pub function: Function,
    /// Bytes of local memory of a group.
    pub local_bytes: u64,
    /// The part of them that the launch provides: see [`Function::provided`].
    pub dynamic_local_bytes: u64,
    /// Integers that parameters may take beyond 64 bits.
    pub integers: Vec<Precondition>,
    /// Bytes of private arrays of a work-item.
    pub private_bytes: u64,
    /// What a reader of the code would not expect.
    pub notes: Vec<Note>,
    /// Work-items of a sub-group.
    pub sub_group: SubGroup,
    /// How the target's memory serves them.
    pub banks: Banks,
}

/// Code with pieces for its words `$name`; none for a word is nothing.
pub(crate) fn filled(code: &str, piece: impl Fn(&str) -> Option<CodePiece>) -> Vec<CodePiece> {
    let mut pieces = Vec::new();
    for (k, part) in code.split('$').enumerate() {
        let end = part.find(|c: char| !c.is_ascii_lowercase()).filter(|_| k > 0).unwrap_or(part.len());
        let (word, rest) = if k > 0 { part.split_at(end) } else { ("", part) };
        pieces.extend(piece(word));
        pieces.push(CodePiece::Text(rest.into()));
    }
    pieces
}

/// Statements that come from no instruction.
pub(crate) fn plain(name: &str, pieces: Vec<CodePiece>) -> Intrinsic {
    let (written, origins) = (Vec::new(), Vec::new());
    Intrinsic { name: name.to_owned(), pieces, written, origins, together: 0, asynchronous: false }
}
