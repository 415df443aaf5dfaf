//! The primitives, one a file: arguments, check (the proof), edit.

pub mod alias_storage;
pub mod assign_to_rule;
pub mod assume;
pub mod buffer_writes;
pub mod change_layout;
pub mod contract_array;
pub mod convert_to_update;
pub mod declare_callee;
pub mod distribute_loop;
pub mod duplicate_iname;
pub mod eliminate_common_subexpressions;
pub mod embed_table;
pub mod expand_array;
pub mod expand_rule;
pub mod extract_rule;
pub mod factor_update;
pub mod fix_argument;
pub mod fix_parameter;
pub mod fuse_loops;
pub mod hoist_insn;
pub mod inline_call;
pub mod interchange_inames;
pub mod join_array_axes;
pub mod join_arrays;
pub mod join_inames;
pub mod make_atomic;
pub mod map_inames;
pub mod move_insns;
pub mod outline_insns;
pub mod pack_arrays;
pub mod pad_array;
pub mod parallelise_scan;
pub mod pass_table;
pub mod peel_iname;
pub mod pipeline_loop;
pub mod precompute_rule;
pub mod prefetch_array;
pub mod realise_reduction;
pub mod realise_scan;
pub mod reduce_in_tree;
pub mod remove_unused_vars;
pub mod rename;
pub mod replace_with_intrinsic;
pub mod reverse_iname;
pub mod roll_insns;
pub mod separate_array;
pub mod set_address_space;
pub mod shift_iname;
pub mod sink_accumulation;
pub mod skew_iname;
pub mod split_array_axis;
pub mod split_iname;
pub mod stage_value;
pub mod tag_iname;
pub mod tag_inames;
pub mod transpose_array_axes;
pub mod unroll_iname;
pub mod vectorise_iname;

pub use alias_storage::AliasStorage;
pub use assign_to_rule::AssignToRule;
pub use assume::Assume;
pub use buffer_writes::BufferWrites;
pub use change_layout::ChangeLayout;
pub use contract_array::ContractArray;
pub use convert_to_update::ConvertToUpdate;
pub use declare_callee::DeclareCallee;
pub use distribute_loop::DistributeLoop;
pub use duplicate_iname::DuplicateIname;
pub use eliminate_common_subexpressions::EliminateCommonSubexpressions;
pub use embed_table::EmbedTable;
pub use expand_array::ExpandArray;
pub use expand_rule::ExpandRule;
pub use extract_rule::ExtractRule;
pub use factor_update::FactorUpdate;
pub use fix_argument::FixArgument;
pub use fix_parameter::FixParameter;
pub use fuse_loops::FuseLoops;
pub use hoist_insn::HoistInsn;
pub use inline_call::InlineCall;
pub use interchange_inames::InterchangeInames;
pub use join_array_axes::JoinArrayAxes;
pub use join_arrays::JoinArrays;
pub use join_inames::JoinInames;
pub use make_atomic::MakeAtomic;
pub use map_inames::MapInames;
pub use move_insns::{MoveInsns, Place};
pub use outline_insns::OutlineInsns;
pub use pack_arrays::PackArrays;
pub use pad_array::PadArray;
pub use parallelise_scan::ParalleliseScan;
pub use pass_table::PassTable;
pub use peel_iname::{LoopEnd, PeelIname};
pub use pipeline_loop::PipelineLoop;
pub use precompute_rule::PrecomputeRule;
pub use prefetch_array::PrefetchArray;
pub use realise_reduction::RealiseReduction;
pub use realise_scan::RealiseScan;
pub use reduce_in_tree::ReduceInTree;
pub use remove_unused_vars::RemoveUnusedVars;
pub use rename::{NameKind, Rename};
pub use replace_with_intrinsic::ReplaceWithIntrinsic;
pub use reverse_iname::ReverseIname;
pub use roll_insns::RollInsns;
pub use separate_array::SeparateArray;
pub use set_address_space::SetAddressSpace;
pub use shift_iname::ShiftIname;
pub use sink_accumulation::SinkAccumulation;
pub use skew_iname::SkewIname;
pub use split_array_axis::SplitArrayAxis;
pub use split_iname::{SplitIname, Tail};
pub use stage_value::StageValue;
pub use tag_iname::TagIname;
pub use tag_inames::TagInames;
pub use transpose_array_axes::TransposeArrayAxes;
pub use unroll_iname::UnrollIname;
pub use vectorise_iname::VectoriseIname;

use crate::refusal::{Refusal, TransformError};
use crate::schedule::Made;
use purlin_analysis::Analysis;
use purlin_ir::Kernel;
use std::fmt::Display;

/// A transformation with its arguments: a total function of kernels.
pub trait Transform: Display {
    /// Proves the precondition and applies the transformation.
    ///
    /// # Errors
    /// The cause, with a witness where a proof failed.
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal>;

    /// Handles to what the transformation made of `before`; those of [`Made::new_names`] unless names are used again.
    fn made(&self, before: &Kernel, after: &Kernel) -> Made {
        Made::new_names(before, after)
    }

    /// Applies the transformation; handles to what it made come with the result.
    ///
    /// # Errors
    /// Those of [`Transform::apply`].
    fn applied(&self, analysis: &Analysis) -> Result<(Kernel, Made), TransformError> {
        let after = self.apply(analysis.kernel())?;
        let made = self.made(analysis.kernel(), &after);
        Ok((after, made))
    }

    /// Applies the transformation; the result is verified and canonical.
    ///
    /// # Errors
    /// The operation as the user wrote it, and the cause.
    fn apply(&self, kernel: &Kernel) -> Result<Kernel, TransformError> {
        let error = |cause| TransformError { operation: self.to_string(), cause };
        // Canonical before verified: a primitive may leave a loop behind that nothing uses any more.
        let result = self.rewrite(kernel).map_err(error)?.canonical();
        result.verify().map_err(|e| error(Refusal::Malformed(e)))?;
        Analysis::of(&result).check_storage().map_err(|e| error(e.into()))?;
        Ok(result)
    }
}
