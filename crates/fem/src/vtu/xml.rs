//! The XML of a VTU file and its arrays, as text or base64.

use base64::{Engine, engine::general_purpose::STANDARD};
use std::fmt::Write;

/// How numbers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VtuEncoding {
    /// Decimal, with as many digits as bring back every bit.
    Ascii,
    /// Their bytes in base64, little-endian: about a third longer than the bytes.
    #[default]
    Base64,
}

#[derive(Clone, Debug)]
pub(super) enum Numbers {
    Float64(Vec<f64>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    UInt8(Vec<u8>),
}

impl Numbers {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Float64(_) => "Float64",
            Self::Int32(_) => "Int32",
            Self::Int64(_) => "Int64",
            Self::UInt8(_) => "UInt8",
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Float64(list) => list.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::Int32(list) => list.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::Int64(list) => list.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::UInt8(list) => list.clone(),
        }
    }

    fn words(&self) -> Vec<String> {
        match self {
            Self::Float64(list) => list.iter().map(f64::to_string).collect(),
            Self::Int32(list) => list.iter().map(i32::to_string).collect(),
            Self::Int64(list) => list.iter().map(i64::to_string).collect(),
            Self::UInt8(list) => list.iter().map(u8::to_string).collect(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Array {
    name: String,
    components: usize,
    numbers: Numbers,
}

impl Array {
    /// [rows, components] row-major; a row of reals in the plane gets a third component 0, because
    /// VTK's vectors have three.
    pub(super) fn new(name: &str, components: usize, numbers: Numbers) -> Self {
        let name = name.to_owned();
        match numbers {
            Numbers::Float64(list) if components == 2 || (name == "Points" && components == 1) => {
                let row = |row: &[f64]| [row[0], row.get(1).copied().unwrap_or_default(), 0.0];
                let rows = list.chunks_exact(components).flat_map(row).collect();
                Self { name, components: 3, numbers: Numbers::Float64(rows) }
            }
            Numbers::Float64(_) | Numbers::Int32(_) | Numbers::Int64(_) | Numbers::UInt8(_) => {
                Self { name, components, numbers }
            }
        }
    }
}

pub(super) struct Writer {
    encoding: VtuEncoding,
    text: String,
}

impl Writer {
    pub(super) fn new(encoding: VtuEncoding, version: &str, points: usize, cells: usize) -> Self {
        let text = format!(
            "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"{version}\" \
             byte_order=\"LittleEndian\" header_type=\"UInt64\">\n<UnstructuredGrid>\n\
             <Piece NumberOfPoints=\"{points}\" NumberOfCells=\"{cells}\">\n"
        );
        Self { encoding, text }
    }

    pub(super) fn section(&mut self, name: &str, arrays: &[Array]) {
        self.line(format_args!("<{name}>"));
        arrays.iter().for_each(|array| self.array(array));
        self.line(format_args!("</{name}>"));
    }

    fn line(&mut self, line: std::fmt::Arguments) {
        // a string takes all that is written
        let _ = writeln!(self.text, "{line}");
    }

    fn array(&mut self, array: &Array) {
        let (format, content) = match self.encoding {
            VtuEncoding::Ascii => ("ascii", rows(array)),
            VtuEncoding::Base64 => {
                let bytes = array.numbers.bytes();
                let mut all = (bytes.len() as u64).to_le_bytes().to_vec();
                all.extend(bytes);
                ("binary", STANDARD.encode(all))
            }
        };
        // 1 is what a reader assumes; meshio takes it for a matrix of one column if it is said
        let components = match array.components {
            1 => String::new(),
            n => format!(" NumberOfComponents=\"{n}\""),
        };
        self.line(format_args!(
            "<DataArray type=\"{}\" Name=\"{}\"{components} format=\"{format}\">\n{content}\n</DataArray>",
            array.numbers.kind(),
            escaped(&array.name),
        ));
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.text.push_str("</Piece>\n</UnstructuredGrid>\n</VTKFile>\n");
        self.text.into_bytes()
    }
}

/// One row a line, or numbers in lines of some length.
fn rows(array: &Array) -> String {
    let words = array.numbers.words();
    let width = if array.components > 1 { array.components } else { 12 };
    words.chunks(width).map(|row| row.join(" ")).collect::<Vec<_>>().join("\n")
}

fn escaped(name: &str) -> String {
    name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
