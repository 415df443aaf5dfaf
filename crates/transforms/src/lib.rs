//! Primitives that transform loops, arrays, storage and reductions, each with its proof, and the
//! short methods of schedules that make them.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod former_types;
mod interleave;
#[allow(clippy::wildcard_enum_match_arm, reason = "until its matches are exhaustive, too")]
pub mod primitives;
mod schedule;
mod separate;
mod tile;

pub use schedule::ScheduleSteps;

/// The rows of the primitives of this crate, for a set.
#[must_use]
pub fn rows() -> Vec<kingpost_steps::PrimitiveInfo> {
    primitives::rows()
}

/// The steps of this crate that are made of others, for a set.
#[must_use]
pub fn combined() -> [kingpost_steps::CombinedInfo; 5] {
    use kingpost_steps::CombinedInfo;
    [
        CombinedInfo::of::<interleave::Interleave>(
            "interleave",
            "Brings a loop inside all that it holds and writes it out, so that its iterations run side by side.",
        ),
        CombinedInfo::of::<tile::Reorder>("reorder", "Swaps the loops of a perfect nest into an order."),
        CombinedInfo::of::<separate::Separate>(
            "separate_loops",
            "Cuts a loop and those inside until innermost loops decide nothing.",
        ),
        CombinedInfo::of::<tile::Tile>("tile", "Splits loops and brings the loops over blocks outside."),
        CombinedInfo::of::<tile::Wavefront>(
            "wavefront",
            "Lets the outermost loop count waves, whose iterations are independent.",
        ),
    ]
}
