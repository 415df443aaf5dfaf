//! The primitives: one module each, named after it, with a snapshot a fact.
#![allow(clippy::panic, clippy::unwrap_used)] // what a failed test does

mod alias_storage;
mod assign_to_rule;
mod assume;
mod contract_array;
mod convert_to_update;
mod corpus;
mod distribute_loop;
mod embed_table;
mod expand_array;
mod expand_rule;
mod extract_rule;
mod fix_parameter;
mod fuse_loops;
mod hoist_insn;
mod interchange_inames;
mod join_array_axes;
mod make_atomic;
mod pad_array;
mod prefetch_array;
mod random;
mod random_arrays;
mod random_movement;
mod realise_reduction;
mod recipes;
mod remove_unused_vars;
mod rename;
mod reverse_iname;
mod set_address_space;
mod split_array_axis;
mod split_iname;
mod story;
mod tag_iname;
mod transpose_array_axes;
mod unroll_iname;
