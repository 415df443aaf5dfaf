//! Watching a run.

use kingpost_ir::ids::{InameId, InsnId, VarId};

/// Called during a run, in the order things happen.
///
/// The reads and writes of an instance come between its `instance` call and the next `instance` or
/// `enter_loop` call. Elements are row-major positions. Parameters are not reported.
pub trait Observer {
    /// Whether calls are made at all.
    const ENABLED: bool = true;

    /// An instance starts; `point` holds the values of the loops around it, outer first. Its
    /// predicate is evaluated after this call, so it may turn out to write nothing.
    fn instance(&mut self, insn: InsnId, point: &[i64]) {
        let _ = (insn, point);
    }

    /// The domain of a loop (not of a reduction) is about to be evaluated.
    fn enter_loop(&mut self, iname: InameId, point: &[i64]) {
        let _ = (iname, point);
    }

    /// An element is read; updates read the element they write.
    fn read(&mut self, var: VarId, element: usize) {
        let _ = (var, element);
    }

    /// An element is written.
    fn write(&mut self, var: VarId, element: usize) {
        let _ = (var, element);
    }

    /// Whether [`Observer::rounded`] is called.
    const PERTURBS: bool = false;

    /// A floating-point operation had to round; what is returned takes the place of its result.
    /// Another rounding of each operation shows how much of a result roundings decide (Parker
    /// 1997).
    fn rounded(&mut self, value: f64, single: bool) -> f64 {
        let _ = single;
        value
    }
}

/// Watches nothing, at no cost.
impl Observer for () {
    const ENABLED: bool = false;
}
