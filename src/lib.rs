//! Purlin: a polyhedral loop-transformation engine.
