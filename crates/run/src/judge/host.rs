//! What a kernel computes that is too large to interpret, by C on the host.

use super::{Expected, results};
use crate::{LoadError, Loaded};
use kingpost_codegen::{CodegenError, Options, Target, generate};
use kingpost_interp::Memory;
use kingpost_ir::{Atom, AxisTag, Kernel, Node, VarKind};
use kingpost_runtime::{RuntimeError, open};

/// Why a kernel was not computed on the host.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// It has no code in C.
    #[error(transparent)]
    Codegen(#[from] CodegenError),
    /// Its inputs do not fit, or there is no compiler.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl From<RuntimeError> for HostError {
    fn from(error: RuntimeError) -> Self {
        Self::Load(error.into())
    }
}

/// The kernel with its outermost loops over groups, which are threads of the host; none of one that
/// says itself where iterations run. Whether they may run so is for the code generator to prove.
pub(super) fn shared_out(kernel: &Kernel) -> Option<Kernel> {
    let is_free = |tag: AxisTag| match tag {
        AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Rolled | AxisTag::Vector => true,
        AxisTag::Group(_) | AxisTag::Local(_) | AxisTag::Launch => false,
    };
    if !kernel.inames.values().all(|iname| is_free(iname.tag)) {
        return None;
    }
    let mut shared = kernel.clone();
    for node in &kernel.body {
        let Node::Loop(outermost, _) = node else { return None };
        shared.inames[*outermost].tag = AxisTag::Group(0);
    }
    Some(shared)
}

/// The kernel with values for the parameters that temporaries are as long as: code declares a
/// temporary of a constant length alone, and steps that fix such a parameter are not those of the
/// kernel as it is written.
fn with_lengths(mut kernel: Kernel, inputs: &Memory) -> Kernel {
    loop {
        let mut param = None;
        for var in kernel.vars.values().filter(|v| v.kind == VarKind::Temporary) {
            var.shape.iter().for_each(|length| {
                length.for_each_symbol(&mut |atom| {
                    let Atom::Var(v) = atom else { return };
                    let value = inputs.get_param(&kernel.vars[*v].name);
                    param = param.or(value.map(|value| (*v, value)));
                });
            });
        }
        let Some((param, value)) = param else { return kernel };
        kernel = kernel.with_var_fixed(param, value);
    }
}

impl Expected {
    /// What the kernel computes as it is written, in C, where it is too large to interpret: by none
    /// of the steps of a recipe. Each operation is rounded. Threads share out the iterations of
    /// outermost loops that depend on no other ones, each of which is computed as it is written.
    ///
    /// # Errors
    /// No C compiler, a kernel that has no code, inputs that do not fit.
    pub fn by_host(kernel: &Kernel, inputs: &Memory) -> Result<Self, HostError> {
        // what calls mean, and not what its author has written for a target
        let mut kernel = with_lengths(kernel.with_meanings(), inputs);
        kernel.callees.values_mut().for_each(|callee| callee.code.clear());
        let options = Options::default().with_contraction(false);
        let shared = shared_out(&kernel).map(|kernel| generate(&kernel, Target::C, &options));
        let program = match shared {
            Some(Ok(program)) => program,
            // iterations that depend on each other stay in order
            Some(Err(_)) | None => generate(&kernel, Target::C, &options)?,
        };
        let host = open("c")?;
        let loaded = Loaded::new(&*host, &program, inputs)?;
        loaded.launch()?;
        Ok(Self::computed(inputs, results(&kernel, &loaded, inputs)?))
    }
}
