//! No code: the manifest says which features shared dependencies have, see there.
