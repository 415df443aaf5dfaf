//! DLPack's functions of C: a library's tensors and its current stream without a call of Python's.

#![allow(unsafe_code, reason = "DLPack hands functions and tensors out as structures of C")]

use crate::names::name;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use std::ffi::{c_int, c_void};

/// The version of the structures below.
const MAJOR: u32 = 1;
/// Kinds of devices: the host, and a card of CUDA.
const HOST: c_int = 1;
pub(crate) const CARD: c_int = 2;
/// The kind of complex numbers.
pub(crate) const COMPLEX: u8 = 5;

/// `DLPackExchangeAPI` of DLPack 1.3; of its functions those that are called here.
#[repr(C)]
struct Table {
    major: u32,
    minor: u32,
    older: *const Table,
    allocate: *const c_void,
    managed_of: *const c_void,
    object_of: *const c_void,
    tensor_of: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    current_stream: Option<unsafe extern "C" fn(c_int, i32, *mut *mut c_void) -> c_int>,
}

/// `DLTensor`.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: c_int,
    card: i32,
    axes: i32,
    kind: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    offset: u64,
}

/// The functions of a library.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    tensor_of: unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int,
    current_stream: unsafe extern "C" fn(c_int, i32, *mut *mut c_void) -> c_int,
}

/// A tensor of the host or of a card.
pub(crate) struct Found {
    /// [`CARD`], or the host.
    pub(crate) device: c_int,
    pub(crate) card: i64,
    /// The kind of its elements, [`COMPLEX`] for example.
    pub(crate) kind: u8,
    pub(crate) address: u64,
}

impl Exchange {
    /// The functions of the library that a class of arrays is of, if it has those that are needed.
    pub(crate) fn of(class: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let name = c"dlpack_exchange_api";
        let Some(capsule) = class.getattr_opt(name!(class.py(), __dlpack_c_exchange_api__))? else {
            return Ok(None);
        };
        let Ok(capsule) = capsule.cast_into::<PyCapsule>() else { return Ok(None) };
        if !capsule.is_valid_checked(Some(name)) {
            return Ok(None);
        }
        // SAFETY: a capsule of this name has such a table, which lives as long as the process.
        let mut table = unsafe { capsule.pointer_checked(Some(name))?.cast::<Table>().as_ref() };
        // of another major version nothing but the number and what leads to an older one is known
        while table.major != MAJOR {
            // SAFETY: null, or a table that lives as long as the process.
            match unsafe { table.older.as_ref() } {
                Some(older) => table = older,
                None => return Ok(None),
            }
        }
        let (Some(tensor_of), Some(current_stream)) = (table.tensor_of, table.current_stream) else {
            return Ok(None);
        };
        Ok(Some(Self { tensor_of, current_stream }))
    }

    /// A tensor: `layout` gets what tells it from others but its address. None of devices other than
    /// the host and cards of CUDA.
    ///
    /// # Errors
    /// What the library raises.
    pub(crate) fn read(self, value: &Bound<'_, PyAny>, layout: &mut Vec<u64>) -> PyResult<Option<Found>> {
        let mut tensor = Tensor {
            data: std::ptr::null_mut(),
            device: 0,
            card: 0,
            axes: 0,
            kind: 0,
            bits: 0,
            lanes: 0,
            shape: std::ptr::null(),
            strides: std::ptr::null(),
            offset: 0,
        };
        // SAFETY: the value is of the class whose table this is, and the interpreter is attached.
        if unsafe { (self.tensor_of)(value.as_ptr().cast(), &raw mut tensor) } != 0 {
            return Err(PyErr::fetch(value.py()));
        }
        let axes = tensor.axes.unsigned_abs() as usize;
        if ![HOST, CARD].contains(&tensor.device) || (axes > 0 && tensor.shape.is_null()) {
            return Ok(None);
        }
        layout.push(tensor.device as u64 | (axes as u64) << 32);
        let element = u64::from(tensor.kind) | u64::from(tensor.bits) << 8 | u64::from(tensor.lanes) << 16;
        layout.push(element | u64::from(tensor.card as u32) << 32);
        if axes > 0 {
            // SAFETY: it has that many entries, which live until Python runs again.
            layout
                .extend(unsafe { std::slice::from_raw_parts(tensor.shape, axes) }.iter().map(|n| *n as u64));
        }
        match axes > 0 && !tensor.strides.is_null() {
            // SAFETY: as above.
            true => layout.extend(
                unsafe { std::slice::from_raw_parts(tensor.strides, axes) }.iter().map(|n| *n as u64),
            ),
            // row by row; there are no such strides
            false => layout.push(u64::MAX),
        }
        Ok(Some(Found {
            device: tensor.device,
            card: tensor.card.into(),
            kind: tensor.kind,
            address: tensor.data as u64 + tensor.offset,
        }))
    }

    /// The current stream of the library on a card.
    ///
    /// # Errors
    /// What the library raises.
    pub(crate) fn current_stream(self, py: Python<'_>, card: i64) -> PyResult<u64> {
        let mut stream = std::ptr::null_mut();
        // SAFETY: the card is one that the library told, and the interpreter is attached.
        match unsafe { (self.current_stream)(CARD, card as i32, &raw mut stream) } {
            0 => Ok(stream as u64),
            _ => Err(PyErr::fetch(py)),
        }
    }
}
