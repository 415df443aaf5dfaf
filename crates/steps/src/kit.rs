//! What a primitive is made of: names to ids with the refusals for what there is not, and edits of
//! the loop tree. Proofs are in [`proofs`](crate::proofs), regions and copies of arrays in
//! [`staging`](crate::staging).

pub use crate::copy::{copy_loop, copy_nodes};
pub use crate::expected::Expected;
pub use crate::lookup::{free, iname, insn, rule, tree_loop, var};
pub use crate::nest::{copy_loops, new_loop, renamed, wrapped};
pub use crate::substitute::{remap_iname, substitute_iname};
pub use crate::tree::{
    body_of, edit_body, edit_siblings, inames_of, insns_of, loop_around, loop_body, replace_loop, siblings,
};
