//! Names that every target accepts.

use crate::ast::Name;
use purlin_ir::Kernel;
use std::collections::BTreeSet;

/// Words that C, CUDA or OpenCL reserve or that the printers use, sorted.
const RESERVED: &[&str] = &[
    "INFINITY",
    "NAN",
    "abs",
    "alignas",
    "alignof",
    "args",
    "asm",
    "atomicAdd",
    "atomicCAS",
    "atomic_add",
    "atomic_cmpxchg",
    "atomic_max",
    "atomic_min",
    "auto",
    "barrier",
    "blockDim",
    "blockIdx",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "clamp",
    "class",
    "complex",
    "const",
    "constant",
    "continue",
    "cross",
    "default",
    "delete",
    "distance",
    "do",
    "dot",
    "double",
    "else",
    "enum",
    "event_t",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "gamma",
    "get_group_id",
    "get_local_id",
    "global",
    "goto",
    "grid",
    "gridDim",
    "half",
    "if",
    "image1d_t",
    "image2d_t",
    "image3d_t",
    "inline",
    "int",
    "int32_t",
    "int64_t",
    "j0",
    "j1",
    "jn",
    "kernel",
    "length",
    "local",
    "local_memory",
    "long",
    "main",
    "max",
    "min",
    "mix",
    "mutable",
    "namespace",
    "new",
    "normalize",
    "nullptr",
    "operator",
    "pipe",
    "printf",
    "private",
    "protected",
    "public",
    "quad",
    "register",
    "restrict",
    "return",
    "sampler_t",
    "select",
    "short",
    "sign",
    "signed",
    "size_t",
    "sizeof",
    "smoothstep",
    "static",
    "step",
    "struct",
    "switch",
    "template",
    "this",
    "threadIdx",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "uchar",
    "uint",
    "ulong",
    "uniform",
    "union",
    "unsigned",
    "ushort",
    "using",
    "virtual",
    "void",
    "volatile",
    "warpSize",
    "while",
    "y0",
    "y1",
    "yn",
];

/// Names in use, and fresh ones.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    used: BTreeSet<Name>,
}

impl Names {
    /// Nothing in use.
    pub(crate) fn new() -> Self {
        Self { used: BTreeSet::new() }
    }

    /// `stem` if no target reserves it and it is not in use, else `stem_`, `stem_1`, `stem_2`, ….
    pub(crate) fn fresh(&mut self, stem: &str) -> Name {
        let mut name = stem.to_owned();
        if is_reserved(stem) {
            name.push('_');
        }
        let mut k = 0;
        while self.used.contains(name.as_str()) || is_reserved(&name) {
            k += 1;
            name = format!("{stem}_{k}");
        }
        let name: Name = name.into();
        self.used.insert(name.clone());
        name
    }

    /// Gives back a name that nothing has.
    pub(crate) fn give_back(&mut self, name: &Name) {
        self.used.remove(name);
    }
}

/// Whether a word means something in one of the targets. Two underscores, or one before a capital,
/// belong to the implementation; vector types of OpenCL end in a digit.
fn is_reserved(word: &str) -> bool {
    RESERVED.binary_search(&word).is_ok()
        || word.starts_with("__")
        || (word.starts_with('_') && word[1..].starts_with(|c: char| c.is_ascii_uppercase()))
        || word.starts_with("purlin_")
        || is_of_vectors(word.strip_prefix("make_").unwrap_or(word))
        || purlin_ir::MathFn::from_name(word).is_some()
        || word.strip_suffix('f').is_some_and(|w| purlin_ir::MathFn::from_name(w).is_some())
}

/// Whether a word is a type of vectors, or a function that loads or stores them.
fn is_of_vectors(word: &str) -> bool {
    let base = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let types =
        ["char", "short", "int", "long", "longlong", "float", "double", "uchar", "ushort", "uint", "ulong"];
    matches!(&word[base.len()..], "1" | "2" | "3" | "4" | "8" | "16")
        && (types.contains(&base) || ["half", "ulonglong", "vload", "vstore"].contains(&base))
}

/// Name of the entry point.
pub(crate) fn entry(kernel: &Kernel) -> Name {
    Names::new().fresh(&kernel.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_sorted() {
        assert!(RESERVED.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn reserved_words_and_repeats_get_suffixes() {
        let mut names = Names::new();
        assert_eq!(&*names.fresh("long"), "long_");
        assert_eq!(&*names.fresh("long"), "long_1");
        assert_eq!(&*names.fresh("float4"), "float4_");
        assert_eq!(&*names.fresh("vload4"), "vload4_");
        assert_eq!(&*names.fresh("make_double2"), "make_double2_");
        assert_eq!(&*names.fresh("cell"), "cell");
        assert_eq!(&*names.fresh("cell"), "cell_1");
    }
}
