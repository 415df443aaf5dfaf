//! The primitives, one a file, and their table.
//!
//! A primitive is its file, its row in the table, and its folder of facts. What is true of it stands
//! in its file: the name in recipes, what it proves, what it keeps.

pub mod collect_factors;
pub mod combine_orbits;
pub mod copy_table;
pub mod crop_table;
pub mod decompose_parity;
pub mod drop_zero_terms;
pub mod eliminate_common_subexpressions;
pub mod embed_table;
pub mod expand_products;
pub mod factor_out;
pub mod factor_quadrature;
pub mod factor_rank;
pub mod factor_table;
pub mod factor_update;
pub mod factorise_sum;
pub mod fix_argument;
pub mod list_elements;
pub mod mirror_triangle;
pub mod pass_blocks;
pub mod pass_starts;
pub mod pass_table;
pub mod pass_values;
pub mod pre_evaluate_loop;
pub mod reassociate;
pub mod reorder_rows;
pub mod rescale_reduction;
pub mod set_precision;
pub mod share_elements;
pub mod sink_accumulation;
pub mod skip_zero_blocks;
pub mod skip_zero_terms;
pub mod split_sum;
pub mod sum_moments;
pub mod use_symmetry;

kingpost_steps::table! {
    collect_factors::CollectFactors;
    combine_orbits::CombineOrbits;
    copy_table::CopyTable;
    crop_table::CropTable;
    decompose_parity::DecomposeParity, LineAxis;
    drop_zero_terms::DropZeroTerms;
    eliminate_common_subexpressions::EliminateCommonSubexpressions;
    embed_table::EmbedTable;
    expand_products::ExpandProducts;
    factor_out::FactorOut;
    factor_quadrature::FactorQuadrature;
    factor_rank::FactorRank;
    factor_table::FactorTable;
    factor_update::FactorUpdate;
    factorise_sum::FactoriseSum;
    fix_argument::FixArgument;
    list_elements::ListElements;
    mirror_triangle::MirrorTriangle;
    pass_blocks::PassBlocks;
    pass_starts::PassStarts;
    pass_table::PassTable;
    pass_values::PassValues;
    pre_evaluate_loop::PreEvaluateLoop;
    reassociate::Reassociate;
    reorder_rows::ReorderRows;
    rescale_reduction::RescaleReduction;
    set_precision::SetPrecision, Precision;
    share_elements::ShareElements;
    sink_accumulation::SinkAccumulation;
    skip_zero_blocks::SkipZeroBlocks;
    skip_zero_terms::SkipZeroTerms;
    split_sum::SplitSum;
    sum_moments::SumMoments;
    use_symmetry::UseSymmetry, ImageAxis;
}
