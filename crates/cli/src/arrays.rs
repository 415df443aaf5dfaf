//! Arrays of a run as NumPy files.

use super::failure::Failure;
use kingpost::Loaded;
use kingpost::files;
use kingpost::interp::{Memory, Value};
use kingpost::ir::{Affine, Atom, Direction, Kernel, VarKind, Variable};
use kingpost::judge::results;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where arrays are written: a folder that exists, found out before anything is run.
pub struct Arrays {
    results: PathBuf,
    inputs: Option<PathBuf>,
}

impl Arrays {
    /// Makes the folder, and one inside it for inputs if they are wanted.
    pub fn new(dir: &Path, with_inputs: bool) -> Result<Self, Failure> {
        let inputs = with_inputs.then(|| dir.join("inputs"));
        let innermost = inputs.as_deref().unwrap_or(dir);
        std::fs::create_dir_all(innermost).map_err(|e| Failure::of_write(innermost, &e))?;
        Ok(Self { results: dir.to_owned(), inputs })
    }

    /// Writes what `kernel` was given, row by row; says where.
    pub fn save_inputs(&self, kernel: &Kernel, memory: &Memory) -> Result<String, Failure> {
        let Some(dir) = &self.inputs else { return Ok(String::new()) };
        let read = |kind: &VarKind| matches!(kind, VarKind::Argument(Direction::In | Direction::InOut));
        let mut said = String::new();
        for var in kernel.vars.values().filter(|v| read(&v.kind)) {
            if let Some(value) = memory.get(&var.name) {
                said += &save(dir, kernel, var, memory, value)?;
            }
        }
        Ok(said)
    }

    /// Writes what `kernel` has made, row by row; says where. Elements that nothing writes hold nan
    /// or -1.
    pub fn save_results(
        &self,
        kernel: &Kernel,
        loaded: &Loaded<'_>,
        memory: &Memory,
    ) -> Result<String, Failure> {
        let mut said = String::new();
        for (name, value) in results(kernel, loaded, memory)? {
            if let Some(var) = kernel.var(&name) {
                said += &save(&self.results, kernel, &kernel.vars[var], memory, &value)?;
            }
        }
        Ok(said)
    }
}

/// Writes one array as `NAME.npy`, in C order; a scalar has no axis.
fn save(
    dir: &Path,
    kernel: &Kernel,
    var: &Variable,
    memory: &Memory,
    value: &Value,
) -> Result<String, Failure> {
    let name = &var.name;
    let path = dir.join(format!("{name}.npy"));
    let shape =
        shape(kernel, var, memory).filter(|shape| shape.iter().product::<u64>() == value.len() as u64);
    let Some(shape) = shape else {
        return Err(Failure::Refused(format!(
            "`{name}` has {} elements, which its shape does not explain",
            value.len()
        )));
    };
    let written = files::replace(&path, |file| write(file, &shape, value));
    written.map_err(|e| Failure::of_write(&path, &e))?;
    let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
    Ok(format!("wrote {} ({} [{}])\n", path.display(), value.ty(), shape.join(", ")))
}

/// The format of Kern (2007), "NEP 1: A simple file format for NumPy arrays", version 1.0: the 128
/// bytes before the elements do not justify the parser of Python literals that each crate for
/// the format brings.
fn write(to: &mut dyn Write, shape: &[u64], value: &Value) -> std::io::Result<()> {
    let ty = match value {
        Value::F64(_) => "<f8",
        Value::F32(_) => "<f4",
        Value::I32(_) => "<i4",
        Value::I64(_) => "<i8",
        Value::I16(_) => "<i2",
        Value::I8(_) => "|i1",
        Value::U8(_) => "|u1",
        Value::U16(_) => "<u2",
        Value::U32(_) => "<u4",
        Value::U64(_) => "<u8",
        Value::Bool(_) => "|b1",
        Value::F16(_) => "<f2",
        // NumPy has no such type: its bits
        Value::Bf16(_) => "<u2",
        Value::C64(_) => "<c8",
        Value::C128(_) => "<c16",
    };
    let shape = match shape {
        [only] => format!("({only},)"),
        all => format!("({})", all.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut header = format!("{{'descr': '{ty}', 'fortran_order': False, 'shape': {shape}, }}");
    // magic bytes, version, length and header end at a multiple of 64, the header with a new line
    let before = 10;
    let padded = (before + header.len() + 1).next_multiple_of(64) - before;
    header += &" ".repeat(padded - 1 - header.len());
    header.push('\n');
    let length = u16::try_from(header.len()).map_err(std::io::Error::other)?;
    to.write_all(b"\x93NUMPY\x01\x00")?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(header.as_bytes())?;
    match value {
        Value::F64(v) => v.iter().try_for_each(|x| to.write_all(&x.to_le_bytes()))?,
        Value::F32(v) => v.iter().try_for_each(|x| to.write_all(&x.to_le_bytes()))?,
        Value::I32(v) => v.iter().try_for_each(|x| to.write_all(&x.to_le_bytes()))?,
        Value::I64(v) => v.iter().try_for_each(|x| to.write_all(&x.to_le_bytes()))?,
        Value::I16(v) => v.iter().try_for_each(|x| to.write_all(&x.to_le_bytes()))?,
        Value::I8(v) => v.iter().try_for_each(|x| to.write_all(&x.to_le_bytes()))?,
        Value::U8(v) => v.iter().try_for_each(|x| to.write_all(&x.to_le_bytes()))?,
        Value::U16(v) => v.iter().try_for_each(|x| to.write_all(&x.to_le_bytes()))?,
        Value::U32(v) => v.iter().try_for_each(|x| to.write_all(&x.to_le_bytes()))?,
        Value::U64(v) => v.iter().try_for_each(|x| to.write_all(&x.to_le_bytes()))?,
        Value::Bool(v) => v.iter().try_for_each(|x| to.write_all(&[x.0]))?,
        Value::F16(v) => v.iter().try_for_each(|x| to.write_all(&x.0.to_le_bytes()))?,
        Value::Bf16(v) => v.iter().try_for_each(|x| to.write_all(&x.0.to_le_bytes()))?,
        Value::C64(v) => {
            v.iter().flat_map(|z| [z.re, z.im]).try_for_each(|x| to.write_all(&x.to_le_bytes()))?;
        }
        Value::C128(v) => {
            v.iter().flat_map(|z| [z.re, z.im]).try_for_each(|x| to.write_all(&x.to_le_bytes()))?;
        }
    }
    Ok(())
}

/// The extents of an array; none where a parameter has no value.
fn shape(kernel: &Kernel, var: &Variable, memory: &Memory) -> Option<Vec<u64>> {
    let extent = |e: &Affine| {
        let value = e.eval(&mut |atom| match atom {
            Atom::Var(v) => memory.get_param(&kernel.vars[*v].name),
            Atom::Iname(_) | Atom::Floor(..) => None,
        });
        u64::try_from(value?).ok()
    };
    var.shape.iter().map(extent).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// As `numpy.save` of NumPy 2 writes it.
    #[test]
    fn header_and_elements_are_those_of_numpy() {
        let bytes = |shape: &[u64], value: Value| {
            let mut bytes = Vec::new();
            write(&mut bytes, shape, &value).unwrap();
            bytes
        };
        let header = |text: &str| {
            let mut all = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
            all.extend(format!("{text:117}\n").as_bytes());
            all
        };
        let mut matrix = header("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2), }");
        matrix.extend([1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff]);
        assert_eq!(bytes(&[1, 2], Value::I32(vec![1, -2])), matrix);
        let mut vector = header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }");
        vector.extend([0, 0, 0, 0, 0, 0, 0xf8, 0x3f]);
        assert_eq!(bytes(&[1], Value::F64(vec![1.5])), vector);
        let mut scalar = header("{'descr': '<f4', 'fortran_order': False, 'shape': (), }");
        scalar.extend([0, 0, 0xc0, 0x3f]);
        assert_eq!(bytes(&[], Value::F32(vec![1.5])), scalar);
        assert_eq!(
            bytes(&[0, 7], Value::I64(vec![])),
            header("{'descr': '<i8', 'fortran_order': False, 'shape': (0, 7), }")
        );
    }
}
