//! The primitives, one a file, and their table.
//!
//! A primitive is its file, its place in [`steps`], and its folder of facts. What is true of it stands in its
//! file: the name in recipes, what it proves, what it keeps.

pub mod alias_storage;
pub mod assign_to_rule;
pub mod assume;
pub mod buffer_writes;
pub mod change_layout;
pub mod collect_factors;
pub mod combine_orbits;
pub mod contract_array;
pub mod convert_to_update;
pub mod copy_table;
pub mod crop_table;
pub mod declare_callee;
pub mod decompose_parity;
pub mod distribute_loop;
pub mod drop_zero_terms;
pub mod duplicate_iname;
pub mod eliminate_common_subexpressions;
pub mod embed_table;
pub mod expand_array;
pub mod expand_products;
pub mod expand_rule;
pub mod extract_rule;
pub mod factor_out;
pub mod factor_quadrature;
pub mod factor_rank;
pub mod factor_table;
pub mod factor_update;
pub mod factorise_sum;
pub mod fix_argument;
pub mod fix_parameter;
pub mod fold_array;
pub mod fuse_loops;
pub mod hoist_insn;
pub mod hoist_nest;
pub mod inline_call;
pub mod interchange_inames;
pub mod join_array_axes;
pub mod join_arrays;
pub mod join_inames;
pub mod list_elements;
pub mod make_atomic;
pub mod map_inames;
pub mod mirror_triangle;
pub mod move_insns;
pub mod outline_insns;
pub mod pack_arrays;
pub mod pad_array;
pub mod pad_inames;
pub mod parallelise_scan;
pub mod pass_table;
pub mod pass_values;
pub mod peel_iname;
pub mod pipeline_loop;
pub mod pre_evaluate_loop;
pub mod precompute_rule;
pub mod prefetch_array;
pub mod realise_reduction;
pub mod realise_scan;
pub mod reassociate;
pub mod reduce_in_tree;
pub mod remove_unused_vars;
pub mod rename;
pub mod reorder_rows;
pub mod replace_with_intrinsic;
pub mod reverse_iname;
pub mod roll_insns;
pub mod separate_array;
pub mod set_address_space;
pub mod set_dynamic_local;
pub mod set_resident_groups;
pub mod shift_iname;
pub mod sink_accumulation;
pub mod skew_iname;
pub mod skip_zero_blocks;
pub mod skip_zero_terms;
pub mod split_accumulation;
pub mod split_array_axis;
pub mod split_iname;
pub mod split_lives;
pub mod split_sum;
pub mod stage_value;
pub mod sum_moments;
pub mod tag_iname;
pub mod tag_inames;
pub mod transpose_array_axes;
pub mod unroll_iname;
pub mod use_symmetry;
pub mod vectorise_iname;
pub mod write_out;

use crate::step_set::StepSet;
use std::sync::OnceLock;

/// The rows of the table: `module::Primitive, further types`.
macro_rules! table {
    ($($module:ident::$primitive:ident $(, $more:ident)*;)*) => {
        $(pub use $module::{$primitive $(, $more)*};)*

        /// The primitives of this crate, as a set that others can be added to.
        ///
        /// ```
        /// assert!(purlin_transforms::steps().row("split_iname").is_some());
        /// ```
        pub fn steps() -> &'static StepSet {
            static SET: OnceLock<StepSet> = OnceLock::new();
            SET.get_or_init(|| StepSet::default()$(.and_own::<$primitive>())*)
        }
    };
}

table! {
    alias_storage::AliasStorage;
    assign_to_rule::AssignToRule;
    assume::Assume;
    buffer_writes::BufferWrites;
    change_layout::ChangeLayout;
    collect_factors::CollectFactors;
    combine_orbits::CombineOrbits;
    contract_array::ContractArray;
    convert_to_update::ConvertToUpdate;
    copy_table::CopyTable;
    crop_table::CropTable;
    declare_callee::DeclareCallee;
    decompose_parity::DecomposeParity, LineAxis;
    distribute_loop::DistributeLoop;
    drop_zero_terms::DropZeroTerms;
    duplicate_iname::DuplicateIname;
    eliminate_common_subexpressions::EliminateCommonSubexpressions;
    embed_table::EmbedTable;
    expand_array::ExpandArray;
    expand_products::ExpandProducts;
    expand_rule::ExpandRule;
    extract_rule::ExtractRule;
    factor_out::FactorOut;
    factor_quadrature::FactorQuadrature;
    factor_rank::FactorRank;
    factor_table::FactorTable;
    factor_update::FactorUpdate;
    factorise_sum::FactoriseSum;
    fix_argument::FixArgument;
    fix_parameter::FixParameter;
    fold_array::FoldArray;
    fuse_loops::FuseLoops;
    hoist_insn::HoistInsn;
    hoist_nest::HoistNest;
    inline_call::InlineCall;
    interchange_inames::InterchangeInames;
    join_array_axes::JoinArrayAxes;
    join_arrays::JoinArrays;
    join_inames::JoinInames;
    list_elements::ListElements;
    make_atomic::MakeAtomic;
    map_inames::MapInames;
    mirror_triangle::MirrorTriangle;
    move_insns::MoveInsns, Place;
    outline_insns::OutlineInsns;
    pack_arrays::PackArrays;
    pad_array::PadArray;
    pad_inames::PadInames;
    parallelise_scan::ParalleliseScan;
    pass_table::PassTable;
    pass_values::PassValues;
    peel_iname::PeelIname, LoopEnd;
    pipeline_loop::PipelineLoop;
    pre_evaluate_loop::PreEvaluateLoop;
    precompute_rule::PrecomputeRule;
    prefetch_array::PrefetchArray;
    realise_reduction::RealiseReduction;
    realise_scan::RealiseScan;
    reassociate::Reassociate;
    reduce_in_tree::ReduceInTree;
    remove_unused_vars::RemoveUnusedVars;
    rename::Rename, NameKind;
    reorder_rows::ReorderRows;
    replace_with_intrinsic::ReplaceWithIntrinsic;
    reverse_iname::ReverseIname;
    roll_insns::RollInsns;
    separate_array::SeparateArray;
    set_address_space::SetAddressSpace;
    set_dynamic_local::SetDynamicLocal;
    set_resident_groups::SetResidentGroups;
    shift_iname::ShiftIname;
    sink_accumulation::SinkAccumulation;
    skew_iname::SkewIname;
    skip_zero_blocks::SkipZeroBlocks;
    skip_zero_terms::SkipZeroTerms;
    split_accumulation::SplitAccumulation;
    split_array_axis::SplitArrayAxis;
    split_iname::SplitIname, Tail;
    split_lives::SplitLives;
    split_sum::SplitSum;
    stage_value::StageValue;
    sum_moments::SumMoments;
    tag_iname::TagIname;
    tag_inames::TagInames;
    transpose_array_axes::TransposeArrayAxes;
    unroll_iname::UnrollIname;
    use_symmetry::UseSymmetry, ImageAxis;
    vectorise_iname::VectoriseIname;
    write_out::WriteOut;
}
