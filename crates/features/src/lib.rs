//! No code: the manifest says which features shared dependencies have, and why.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]
