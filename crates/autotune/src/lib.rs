//! Device models, rooflines and tuning.
