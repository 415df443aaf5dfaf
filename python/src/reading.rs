//! What a call is given, read in a microsecond: types, layouts, addresses and numbers.
//!
//! Two calls with the same reading mean the same to [`crate::bind`], so that one which was checked need
//! not be checked again. A call with values that are not read here is bound as any other.

#![allow(unsafe_code, reason = "NumPy hands its description of an array out as a structure of C")]

use crate::exchange::{self, Exchange};
use crate::names::name;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyCapsule, PyCapsuleMethods, PyComplex, PyDict, PyFloat, PyInt, PyString, PyTuple,
};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

/// A class of arrays, and how they are read.
#[derive(Clone)]
pub(crate) struct Library {
    class: Arc<Py<PyAny>>,
    kind: Kind,
    /// Of PyTorch since 2.10: what reads a tensor in a tenth of the time that its attributes take.
    exchange: Option<Exchange>,
}

#[derive(Clone)]
enum Kind {
    Numpy,
    /// With what tells the current stream of a card.
    Torch(Arc<Py<PyAny>>),
    /// With what makes the current stream.
    Cupy(Arc<Py<PyAny>>),
    /// `__cuda_array_interface__` since version 3, which tells a stream.
    Interface,
}

impl Library {
    /// The library of a value, if it is known.
    fn of<'l>(libraries: &'l [Self], value: &Bound<'_, PyAny>) -> Option<&'l Self> {
        let class = value.get_type();
        libraries.iter().find(|known| known.class.as_ptr() == class.as_ptr())
    }

    /// Finds out whose the class of a value is, by the modules that are there.
    fn found(value: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = value.py();
        let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
        let class = value.get_type();
        let of = |name: &str, kind: &str| match modules.get_item(name)? {
            Some(module) if module.getattr_opt(kind)?.is_some_and(|it| it.is(&class)) => Ok(Some(module)),
            Some(_) | None => Ok::<_, PyErr>(None),
        };
        let kind = if of("numpy", "ndarray")?.is_some() {
            Some(Kind::Numpy)
        } else if let Some(torch) = of("torch", "Tensor")? {
            let raw = torch.getattr_opt("_C")?.map(|c| c.getattr_opt("_cuda_getCurrentRawStream"));
            let raw = raw.transpose()?.flatten();
            let stream = raw.map_or_else(|| torch.getattr("cuda")?.getattr("current_stream"), Ok)?;
            Some(Kind::Torch(Arc::new(stream.unbind())))
        } else if let Some(cupy) = of("cupy", "ndarray")? {
            Some(Kind::Cupy(Arc::new(cupy.getattr("cuda")?.getattr("get_current_stream")?.unbind())))
        } else {
            let interface = value.getattr_opt(name!(py, __cuda_array_interface__))?;
            interface.map(|_| Kind::Interface)
        };
        // of other libraries its tensors do not tell what may be written
        let exchange = match &kind {
            Some(Kind::Torch(_)) => Exchange::of(class.as_any())?,
            Some(Kind::Numpy | Kind::Cupy(_) | Kind::Interface) | None => None,
        };
        Ok(kind.map(|kind| Self { class: Arc::new(class.into_any().unbind()), kind, exchange }))
    }
}

/// A value of a call, or of a dictionary among them.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Leaf {
    /// The array at this place of [`Reading::addresses`].
    Array(usize),
    /// The number at this place of [`Reading::numbers`].
    Number(usize),
}

/// A number by its bits.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Bits {
    Int(i64),
    Real(u64),
    Complex(u64, u64),
}

/// The arguments of a call.
#[derive(Default)]
pub(crate) struct Reading {
    /// All but addresses and numbers: names, types, extents, strides, what may be written, streams.
    pub(crate) layout: Vec<u64>,
    pub(crate) addresses: Vec<u64>,
    pub(crate) numbers: Vec<Bits>,
    /// What is given, in order.
    pub(crate) leaves: Vec<Leaf>,
    /// The card of PyTorch's tensors.
    card: Option<i64>,
    /// The current stream of PyTorch there.
    pub(crate) torch: Option<u64>,
    /// Whether an array is CuPy's.
    cupy: bool,
}

/// Words that tell kinds of values apart.
const NUMPY: u64 = 1;
const TORCH: u64 = 2;
const CUPY: u64 = 3;
const INTERFACE: u64 = 4;
const INT: u64 = 5;
const REAL: u64 = 6;
const COMPLEX: u64 = 7;
const DICTIONARY: u64 = 8;
const NONE: u64 = 9;
const SOME: u64 = 10;

/// `PyArrayInterface` of NumPy.
#[repr(C)]
struct ArrayStruct {
    two: c_int,
    axes: c_int,
    kind: c_char,
    size: c_int,
    flags: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *const c_void,
    description: *const c_void,
}

/// Of the flags: bytes in the order of this machine, and whether it may be written.
const NATIVE: c_int = 0x200;
const WRITABLE: c_int = 0x400;

/// The arguments of a call as Python gives them.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a, 'py> {
    pub(crate) args: &'a Bound<'py, PyTuple>,
    pub(crate) kwargs: &'a Bound<'py, PyDict>,
    pub(crate) stream: Option<&'a Bound<'py, PyAny>>,
}

impl<'py> Given<'_, 'py> {
    /// The libraries of its arrays that are not known yet.
    pub(crate) fn libraries(self, known: &[Library]) -> PyResult<Vec<Library>> {
        let mut new = Vec::new();
        let nested = self.kwargs.values().iter().filter_map(|value| value.cast_into_exact::<PyDict>().ok());
        let nested: Vec<_> = nested.flat_map(|fields| fields.values().iter().collect::<Vec<_>>()).collect();
        for value in self.args.iter().chain(self.kwargs.values().iter()).chain(nested) {
            if Library::of(known, &value).or(Library::of(&new, &value)).is_none() {
                new.extend(Library::found(&value)?);
            }
        }
        Ok(new)
    }

    /// The names of what is given, in the order of [`Reading::leaves`]: those of a dictionary's values
    /// with the dictionary's own.
    pub(crate) fn names(self, positions: &[String]) -> PyResult<Vec<(Option<String>, String)>> {
        let mut names: Vec<_> = positions.iter().take(self.args.len()).map(|n| (None, n.clone())).collect();
        for (name, value) in self.kwargs.iter() {
            let name: String = name.extract()?;
            match value.cast_exact::<PyDict>() {
                Err(_) => names.push((None, name)),
                Ok(fields) => {
                    for field in fields.keys().iter() {
                        names.push((Some(name.clone()), field.extract()?));
                    }
                }
            }
        }
        Ok(names)
    }

    /// Reads it; false if something is of no library that is known, or what it takes more to understand.
    /// `pins` gets what has to live as long as a reading is compared with others.
    pub(crate) fn read(
        self,
        libraries: &[Library],
        reading: &mut Reading,
        pins: Option<&mut Vec<Py<PyAny>>>,
    ) -> PyResult<bool> {
        let mut reader = Reader { libraries, reading, pins };
        match reader.all(self) {
            // the array is refused where it is bound
            Err(why) if why.is_instance_of::<PyException>(self.args.py()) => Ok(false),
            found => found,
        }
    }
}

/// Whether the memory of a tensor of PyTorch's does not say its elements: its library does not give it, or
/// they are the negatives or conjugates of what it holds.
fn is_beyond(value: &Bound<'_, PyAny>, is_complex: bool) -> PyResult<bool> {
    let says = |name| value.call_method0(name)?.is_truthy();
    Ok(value.getattr(name!(value.py(), requires_grad))?.is_truthy()?
        || says(name!(value.py(), is_neg))?
        || (is_complex && says(name!(value.py(), is_conj))?))
}

struct Reader<'r> {
    libraries: &'r [Library],
    reading: &'r mut Reading,
    pins: Option<&'r mut Vec<Py<PyAny>>>,
}

impl Reader<'_> {
    fn all(&mut self, given: Given<'_, '_>) -> PyResult<bool> {
        let Reading { layout, addresses, numbers, leaves, card, torch, cupy } = &mut *self.reading;
        // the memory of the last reading serves the next one
        layout.clear();
        addresses.clear();
        numbers.clear();
        leaves.clear();
        (*card, *torch, *cupy) = (None, None, false);
        self.word(given.args.len() as u64);
        for value in given.args.iter() {
            if !self.value(&value)? {
                return Ok(false);
            }
        }
        for (name, value) in given.kwargs.iter() {
            self.object(&name);
            let read = match value.cast_exact::<PyDict>() {
                Err(_) => self.value(&value)?,
                Ok(fields) => self.fields(fields)?,
            };
            if !read {
                return Ok(false);
            }
        }
        self.streams(given.args.py(), given.stream)
    }

    fn word(&mut self, word: u64) {
        self.reading.layout.push(word);
    }

    /// An object that stands for itself, as names of arguments and types of elements do.
    fn object(&mut self, object: &Bound<'_, PyAny>) {
        self.word(object.as_ptr() as u64);
        if let Some(pins) = &mut self.pins {
            pins.push(object.clone().unbind());
        }
    }

    fn fields(&mut self, fields: &Bound<'_, PyDict>) -> PyResult<bool> {
        self.word(DICTIONARY);
        self.word(fields.len() as u64);
        for (name, value) in fields.iter() {
            self.object(&name);
            if !name.is_exact_instance_of::<PyString>() || !self.value(&value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn value(&mut self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(real) = value.cast_exact::<PyFloat>() {
            self.number(REAL, Bits::Real(real.value().to_bits()));
        } else if value.is_exact_instance_of::<PyInt>() {
            self.number(INT, Bits::Int(value.extract()?)); // one beyond 64 bits is an error
        } else if let Some(library) = Library::of(self.libraries, value) {
            let leaf = Leaf::Array(self.reading.addresses.len());
            self.reading.leaves.push(leaf);
            return match library.kind {
                Kind::Numpy => self.numpy(value),
                Kind::Torch(_) => match library.exchange {
                    Some(exchange) => self.exchanged(value, exchange),
                    None => self.torch(value),
                },
                Kind::Cupy(_) => self.cupy(value),
                Kind::Interface => self.interface(value),
            };
        } else if let Ok(complex) = value.cast_exact::<PyComplex>() {
            let (re, im) =
                (complex.getattr("real")?.extract::<f64>()?, complex.getattr("imag")?.extract::<f64>()?);
            self.number(COMPLEX, Bits::Complex(re.to_bits(), im.to_bits()));
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn number(&mut self, kind: u64, bits: Bits) {
        self.word(kind);
        self.reading.leaves.push(Leaf::Number(self.reading.numbers.len()));
        self.reading.numbers.push(bits);
    }

    fn numpy(&mut self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let capsule = value.getattr(name!(value.py(), __array_struct__))?.cast_into::<PyCapsule>()?;
        // SAFETY: NumPy's own class has this structure in a capsule without a name, which is alive here.
        let found = unsafe { capsule.pointer_checked(None)?.cast::<ArrayStruct>().as_ref() };
        let kind = found.kind as u8;
        // other kinds are records and what only the type's name tells
        if found.two != 2 || !b"biufc".contains(&kind) || found.flags & NATIVE == 0 {
            return Ok(false);
        }
        let (axes, size) = (found.axes.unsigned_abs() as usize, u64::from(found.size.unsigned_abs()));
        self.word(NUMPY | u64::from(kind) << 8 | (axes as u64) << 16 | size << 24);
        self.word(u64::from(found.flags & WRITABLE != 0));
        if axes > 0 {
            // SAFETY: both have as many entries as there are axes, and live as long as the structure.
            let lists = unsafe {
                [
                    std::slice::from_raw_parts(found.shape, axes),
                    std::slice::from_raw_parts(found.strides, axes),
                ]
            };
            self.reading.layout.extend(lists.into_iter().flatten().map(|n| *n as u64));
        }
        self.reading.addresses.push(found.data as u64);
        Ok(true)
    }

    /// A tensor of PyTorch's by the functions of its library.
    fn exchanged(&mut self, value: &Bound<'_, PyAny>, exchange: Exchange) -> PyResult<bool> {
        self.word(TORCH);
        let Some(found) = exchange.read(value, &mut self.reading.layout)? else { return Ok(false) };
        if is_beyond(value, found.kind == exchange::COMPLEX)? {
            return Ok(false);
        }
        self.reading.addresses.push(found.address);
        Ok(found.device != exchange::CARD || *self.reading.card.get_or_insert(found.card) == found.card)
    }

    fn torch<'py>(&mut self, value: &Bound<'py, PyAny>) -> PyResult<bool> {
        let py = value.py();
        let is = |name: &Bound<'py, PyString>| value.getattr(name)?.is_truthy();
        let says = |name: &Bound<'py, PyString>| value.call_method0(name);
        let dtype = value.getattr(name!(py, dtype))?;
        if is_beyond(value, dtype.getattr(name!(py, is_complex))?.is_truthy()?)? {
            return Ok(false);
        }
        let is_cuda = is(name!(py, is_cuda))?;
        self.word(TORCH | u64::from(is_cuda) << 8);
        self.object(&dtype);
        let card: i64 = says(name!(py, get_device))?.extract()?;
        self.word(card as u64);
        self.tuple(&value.getattr(name!(py, shape))?)?;
        self.tuple(&says(name!(py, stride))?)?;
        self.reading.addresses.push(says(name!(py, data_ptr))?.extract()?);
        Ok(!is_cuda || *self.reading.card.get_or_insert(card) == card)
    }

    fn cupy(&mut self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = value.py();
        let memory = value.getattr(name!(py, data))?;
        self.word(CUPY);
        self.object(&value.getattr(name!(py, dtype))?);
        self.word(memory.getattr(name!(py, device_id))?.extract::<i64>()? as u64);
        self.tuple(&value.getattr(name!(py, shape))?)?;
        // as its interface says it, without a tuple of strides
        let is_row_by_row = value.getattr_opt(name!(py, _c_contiguous))?;
        match is_row_by_row.is_some_and(|it| it.is(PyBool::new(py, true))) {
            true => self.word(NONE),
            false => {
                self.word(SOME);
                self.tuple(&value.getattr(name!(py, strides))?)?;
            }
        }
        self.reading.addresses.push(memory.getattr(name!(py, ptr))?.extract()?);
        self.reading.cupy = true;
        Ok(true)
    }

    fn interface(&mut self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = value.py();
        let interface = value.getattr(name!(py, __cuda_array_interface__))?.cast_into::<PyDict>()?;
        let (Some(version), Some(data), Some(kind), Some(shape)) = (
            interface.get_item(name!(py, version))?,
            interface.get_item(name!(py, data))?,
            interface.get_item(name!(py, typestr))?,
            interface.get_item(name!(py, shape))?,
        ) else {
            return Ok(false);
        };
        let (address, is_read_only): (u64, bool) = data.extract()?;
        let kind: String = kind.extract()?;
        // one before does not tell its stream
        if version.extract::<i64>()? < 3 || kind.len() > 8 {
            return Ok(false);
        }
        self.word(INTERFACE | u64::from(is_read_only) << 8);
        self.object(value.get_type().as_any());
        self.word(kind.bytes().fold(0, |word, byte| word << 8 | u64::from(byte)));
        self.tuple(&shape)?;
        for name in [name!(py, strides), name!(py, stream)] {
            match interface.get_item(name)?.filter(|found| !found.is_none()) {
                None => self.word(NONE),
                Some(found) => {
                    self.word(SOME);
                    match found.cast::<PyTuple>() {
                        Ok(_) => self.tuple(&found)?,
                        Err(_) => self.word(found.extract()?),
                    }
                }
            }
        }
        self.reading.addresses.push(address);
        Ok(true)
    }

    fn tuple(&mut self, numbers: &Bound<'_, PyAny>) -> PyResult<()> {
        let numbers = numbers.cast::<PyTuple>()?;
        self.word(numbers.len() as u64);
        for number in numbers.iter() {
            self.word(number.extract::<i64>()? as u64);
        }
        Ok(())
    }

    /// The stream that is named, and those that libraries work on now.
    fn streams(&mut self, py: Python<'_>, named: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        match named {
            None => self.word(NONE),
            Some(named) => {
                let handle = || py.import("kingpost.compiled")?.call_method1("_stream", (named,))?.extract();
                let handle = if named.is_exact_instance_of::<PyInt>() { named.extract()? } else { handle()? };
                self.word(SOME);
                self.word(handle);
            }
        }
        for library in self.libraries {
            if let (Some(exchange), Some(card)) = (library.exchange, self.reading.card) {
                let handle = exchange.current_stream(py, card)?;
                self.reading.torch = Some(handle);
                self.word(handle);
                continue;
            }
            let stream = match &library.kind {
                Kind::Torch(current) => match self.reading.card {
                    Some(card) => current.bind(py).call1((card,))?,
                    None => continue,
                },
                Kind::Cupy(current) if self.reading.cupy => current.bind(py).call0()?,
                Kind::Numpy | Kind::Cupy(_) | Kind::Interface => continue,
            };
            let handle = if stream.is_exact_instance_of::<PyInt>() {
                stream.extract()?
            } else {
                let handle = match &library.kind {
                    Kind::Torch(_) => name!(py, cuda_stream),
                    Kind::Cupy(_) | Kind::Numpy | Kind::Interface => name!(py, ptr),
                };
                stream.getattr(handle)?.extract()?
            };
            if let Kind::Torch(_) = library.kind {
                self.reading.torch = Some(handle);
            }
            self.word(handle);
        }
        Ok(true)
    }
}
