//! The safe wrapper of isl: checked calls, dimensions by name, objects that stay on their thread.
