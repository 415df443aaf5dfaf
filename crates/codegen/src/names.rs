//! Names that every target accepts.

use crate::ast::Name;
use kingpost_ir::Kernel;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Words that mean something to a compiler of C, CUDA, HIP or OpenCL, or that the printers use, sorted:
/// `scripts/reserved_words.py` makes the file from the compilers' own headers.
static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| include_str!("names/words.txt").lines().collect());

/// First letters of words that belong to a target, whatever follows: each version of its headers
/// adds some.
const FAMILIES: [&str; 7] = ["kingpost_", "cl_", "CL_", "CLK_", "CUDA_", "NV_", "HIP_"];

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
    ///
    /// What is no identifier of C becomes one, and a stem whose first letters are a target's own
    /// gets others before them. A suffix then is enough: candidates differ, and finitely many are
    /// words of a target or in use.
    pub(crate) fn fresh(&mut self, stem: &str) -> Name {
        let stem = identifier(stem);
        let mut name = stem.clone();
        if is_word(&stem) {
            name.push('_');
        }
        let mut k = 0;
        while self.used.contains(name.as_str()) || is_word(&name) {
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

/// Letters, digits and underscores that start neither with a digit nor as words of a target's own
/// do. C and C++ keep names with a leading underscore for the implementation: all of them at file
/// scope, some everywhere.
fn identifier(stem: &str) -> String {
    let word: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_uppercase());
    let is_runtime = ["cuda", "hip"].iter().any(|first| word.strip_prefix(first).is_some_and(goes_on));
    match word.chars().next() {
        Some('_') => format!("v{word}"),
        Some(c) if !c.is_ascii_digit() && !is_runtime && !FAMILIES.iter().any(|f| word.starts_with(f)) => {
            word
        }
        Some(_) | None => format!("v_{word}"),
    }
}

/// Whether a word means something in one of the targets: finitely many do.
fn is_word(word: &str) -> bool {
    WORDS.binary_search(&word).is_ok()
        || is_function(word)
        || word.strip_suffix('f').is_some_and(is_function)
        || kingpost_ir::MathFn::ALL
            .iter()
            .filter_map(|f| f.posix_symbol())
            .any(|symbol| word.strip_prefix(symbol).is_some_and(|rest| rest.is_empty() || rest == "f"))
}

/// Whether a word is a function of reals; those of complex numbers are helpers of the source.
fn is_function(word: &str) -> bool {
    kingpost_ir::MathFn::from_name(word).is_some_and(|f| !f.is_of_complex())
}

/// Name of the entry point.
pub(crate) fn entry(kernel: &Kernel) -> Name {
    Names::new().fresh(&kernel.name)
}

/// Name of the function that takes the arguments of the entry point as pointers.
pub(crate) fn launcher(entry: &str) -> String {
    format!("{entry}_launch")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn words_are_sorted_identifiers() {
        assert!(WORDS.windows(2).all(|w| w[0] < w[1]));
        assert!(WORDS.iter().all(|w| w.starts_with(|c: char| c.is_ascii_alphabetic())));
        assert!(WORDS.iter().all(|w| w.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')));
        assert!(WORDS.len() > 4000, "{} words", WORDS.len());
    }

    #[test]
    fn reserved_words_and_repeats_get_suffixes() {
        let mut names = Names::new();
        let cases = [
            ("long", "long_"),
            ("long", "long_1"),
            ("float4", "float4_"),
            ("vload4", "vload4_"),
            ("make_double2", "make_double2_"),
            ("HUGE_VAL", "HUGE_VAL_"),
            ("INT32_MAX", "INT32_MAX_"),
            ("M_PI", "M_PI_"),
            ("NULL", "NULL_"),
            ("rotate", "rotate_"),
            ("atomicAdd", "atomicAdd_"),
            ("xor", "xor_"),
            ("exp", "exp_"),
            ("expf", "expf_"),
            ("cell", "cell"),
            ("cell", "cell_1"),
        ];
        for (stem, name) in cases {
            assert_eq!(&*names.fresh(stem), name);
        }
    }

    #[test]
    fn what_starts_like_a_name_of_a_target_gets_other_first_letters() {
        let mut names = Names::new();
        let cases = [
            ("_K", "v_K"),
            ("__x", "v__x"),
            ("_x", "v_x"),
            ("_", "v_"),
            ("kingpost_x", "v_kingpost_x"),
            ("kingpost_x", "v_kingpost_x_1"),
            ("v_kingpost_x", "v_kingpost_x_2"),
            ("cudaMalloc", "v_cudaMalloc"),
            ("cuda_mass", "cuda_mass"),
            ("hipMalloc", "v_hipMalloc"),
            ("hips", "hips"),
            ("CLK_LOCAL", "v_CLK_LOCAL"),
        ];
        for (stem, name) in cases {
            assert_eq!(&*names.fresh(stem), name);
        }
    }

    #[test]
    fn what_is_no_identifier_becomes_one() {
        let mut names = Names::new();
        let cases = [
            ("my buffer", "my_buffer"),
            ("my-buffer", "my_buffer_1"),
            ("", "v_"),
            ("9 lives", "v_9_lives"),
            ("grün", "gr_n"),
            ("a\\\nb", "a__b"),
            ("long ", "long_"),
            ("long ", "long__1"),
        ];
        for (stem, name) in cases {
            assert_eq!(&*names.fresh(stem), name, "{stem:?}");
        }
    }

    /// Whatever the words: every candidate of every stem is an identifier that no other name and no
    /// target has.
    #[test]
    fn every_word_gets_a_name_of_its_own() {
        let mut names = Names::new();
        let mut seen = BTreeSet::new();
        let stems =
            WORDS.iter().flat_map(|w| [(*w).to_owned(), format!("{w}_"), format!("_{w}"), format!("{w} ")]);
        for stem in stems.collect::<Vec<_>>().iter().chain(&[String::new()]).cycle().take(40_000) {
            let name = names.fresh(stem);
            assert!(!is_word(&name) && identifier(&name) == *name, "{stem:?}: {name}");
            assert!(seen.insert(name.clone()), "{stem:?}: {name} twice");
        }
    }

    /// The words of the machine's own headers of C, which may be newer than those of the file.
    #[test]
    fn macros_functions_and_types_of_the_c_headers_are_words() {
        let preprocessed = |option: &str| {
            let source = "#include <math.h>\n#include <stdint.h>\n";
            let mut cc = Command::new("cc")
                .args(["-xc", "-std=c11", "-fopenmp", "-E", option, "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .ok()?;
            cc.stdin.take()?.write_all(source.as_bytes()).ok()?;
            String::from_utf8(cc.wait_with_output().ok()?.stdout).ok()
        };
        let (Some(macros), Some(declared)) = (preprocessed("-dM"), preprocessed("-P")) else {
            println!("skipped: no C compiler");
            return;
        };
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let defined =
            macros.lines().filter_map(|l| l.strip_prefix("#define ")?.split(|c| !is_part(c)).next());
        let words: BTreeSet<&str> = defined.chain(declared.split(|c| !is_part(c))).collect();
        let is_name = |w: &&&str| w.len() > 1 && w.starts_with(|c: char| c.is_ascii_alphabetic());
        let unknown: Vec<_> = words.iter().filter(is_name).filter(|w| !is_word(w)).collect();
        assert!(unknown.is_empty(), "add them with scripts/reserved_words.py: {unknown:?}");
        assert!(words.contains("HUGE_VAL") && words.contains("cbrt") && words.contains("int64_t"));
    }
}
