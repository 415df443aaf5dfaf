//! What is known of one kernel.

use purlin_ir::Kernel;

/// What is known of one kernel: everything that checks ask about it goes through this.
#[derive(Clone, Debug)]
pub struct Analysis<'k> {
    kernel: &'k Kernel,
}

impl<'k> Analysis<'k> {
    /// The analysis of `kernel`. Nothing is computed before it is asked for.
    pub fn of(kernel: &'k Kernel) -> Self {
        Self { kernel }
    }

    /// The kernel.
    pub fn kernel(&self) -> &'k Kernel {
        self.kernel
    }
}
