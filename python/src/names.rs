//! The names of attributes that calls ask for, all made when the module is loaded.
//!
//! One that is made at its first use may be half made in another thread where a program forks; the
//! child would wait for it for ever.

use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::OnceLock;

macro_rules! names {
    ($($name:ident)*) => {
        pub(crate) struct Names {
            $(pub(crate) $name: Py<PyString>,)*
        }

        impl Names {
            fn new(py: Python<'_>) -> Self {
                Self { $($name: PyString::intern(py, stringify!($name)).unbind(),)* }
            }
        }
    };
}

names! {
    __array_struct__
    __cuda_array_interface__
    __dlpack_c_exchange_api__
    _c_contiguous
    cuda_stream
    data
    data_ptr
    device_id
    dtype
    get_device
    is_complex
    is_conj
    is_cuda
    is_neg
    ptr
    requires_grad
    shape
    stream
    stride
    strides
    typestr
    version
}

static NAMES: OnceLock<Names> = OnceLock::new();

/// Makes the names: what the module does first.
pub(crate) fn make(py: Python<'_>) {
    NAMES.get_or_init(|| Names::new(py));
}

/// The names.
pub(crate) fn names() -> &'static Names {
    NAMES.get().expect("the module makes its names when it is loaded")
}

/// A name as Python has it.
macro_rules! name {
    ($py:expr, $name:ident) => {
        $crate::names::names().$name.bind($py)
    };
}
pub(crate) use name;
