//! The sizes that document 000's tiling depends on, read from a kernel with the labels of its stages.

use purlin_autotune::{SpaceSizes, TilingSizes};
use purlin_forms::lowering::stage;
use purlin_ir::{Affine, Insn, Kernel, VarId, VarKind, Variable};
use std::collections::BTreeSet;

/// Why a kernel has no such sizes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the kernel `{kernel}` is no operator action of document 000's Algorithm 2: {found}")]
pub struct NoTilingSizes {
    /// The kernel.
    pub kernel: String,
    /// What is missing or unexpected.
    pub found: String,
}

/// A small matrix–vector product: what its instructions share.
struct Product {
    function: String,
    points: u64,
    nodes: u64,
    components: u64,
    tables: BTreeSet<VarId>,
    insns: u64,
    word_bytes: u64,
}

/// Reads the sizes from the instructions that are labelled with the stages `evaluation` and `quadrature`.
///
/// # Errors
/// A kernel without these stages, with several quadrature rules, or with products of another form than a
/// reference matrix times a vector.
///
/// # Source
/// Document 000, Table 2.
pub fn tiling_sizes(kernel: &Kernel) -> Result<TilingSizes, NoTilingSizes> {
    sizes(kernel, false)
}

/// The sizes of a staged tiling: functions that are evaluated with the same matrices are one.
///
/// # Errors
/// As [`tiling_sizes`].
pub fn staged_tiling_sizes(kernel: &Kernel) -> Result<TilingSizes, NoTilingSizes> {
    sizes(kernel, true)
}

fn sizes(kernel: &Kernel, sharing: bool) -> Result<TilingSizes, NoTilingSizes> {
    let refused = |found: String| NoTilingSizes { kernel: kernel.name.clone(), found };
    let mut products: Vec<Product> = Vec::new();
    let mut test: Option<Product> = None;
    for (id, _) in kernel.schedule() {
        let insn = &kernel.insns[id];
        if insn.tags.contains(stage::INIT) {
            continue;
        }
        if insn.tags.contains(stage::EVALUATION) {
            let product = product(kernel, insn).map_err(refused)?;
            match products.iter_mut().find(|p| p.function == product.function) {
                Some(known) => known.join(product).map_err(refused)?,
                None => products.push(product),
            }
        } else if insn.tags.contains(stage::QUADRATURE) {
            let product = product(kernel, insn).map_err(refused)?;
            match &mut test {
                Some(known) => known.join(product).map_err(refused)?,
                None => test = Some(product),
            }
        }
    }
    let test = test.ok_or_else(|| refused(format!("no instruction is labelled `{}`", stage::QUADRATURE)))?;
    if products.is_empty() {
        return Err(refused(format!("no instruction is labelled `{}`", stage::EVALUATION)));
    }
    if let Some(other) = products.iter().find(|p| p.points != test.points) {
        let (name, found, needed) = (&other.function, other.points, test.points);
        return Err(refused(format!(
            "`{name}` is evaluated at {found} points, the test function at {needed}"
        )));
    }
    if sharing {
        products = joined(products);
    }
    Ok(TilingSizes {
        quadrature_points: test.points,
        word_bytes: test.word_bytes,
        trial: products.into_iter().map(Product::sizes).collect(),
        test: test.sizes(),
    })
}

/// Joins the functions that are evaluated with the same matrices.
fn joined(products: Vec<Product>) -> Vec<Product> {
    let mut joined: Vec<Product> = Vec::new();
    for product in products {
        match joined.iter_mut().find(|p| p.tables == product.tables) {
            Some(first) => {
                first.components += product.components;
                first.insns += product.insns;
            }
            None => joined.push(product),
        }
    }
    joined
}

impl Product {
    /// Adds an instruction of the same function.
    fn join(&mut self, other: Self) -> Result<(), String> {
        if (self.points, self.nodes) != (other.points, other.nodes) {
            let Self { function, points, nodes, .. } = self;
            let (p, n) = (other.points, other.nodes);
            return Err(format!("`{function}` has matrices of {points} x {nodes} and of {p} x {n}"));
        }
        self.insns += other.insns;
        self.tables.extend(other.tables);
        Ok(())
    }

    fn sizes(self) -> SpaceSizes {
        SpaceSizes {
            name: self.function,
            nodes: self.nodes,
            components: self.components,
            derivatives: self.insns,
            matrices: self.tables.len() as u64,
        }
    }
}

/// One instruction `sum += matrix[q, j] * vector[j]` or `vector[i] += matrix[q, i] * factor`.
fn product(kernel: &Kernel, insn: &Insn) -> Result<Product, String> {
    let name = &insn.name;
    let reads = insn.reads();
    let variable = |access: &purlin_ir::Access| &kernel.vars[access.var];
    let is_table = |v: &Variable| matches!(v.kind, VarKind::Table(_));
    let mut tables = reads.iter().filter(|a| is_table(variable(a)));
    let (Some(table), None) = (tables.next(), tables.next()) else {
        return Err(format!("`{name}` reads not one reference matrix"));
    };
    let shape = extents(variable(table)).ok_or_else(|| format!("`{name}` reads a matrix of unknown size"))?;
    let [points, nodes] = shape[..] else {
        return Err(format!("`{name}` reads a table of {} axes, needed 2", shape.len()));
    };
    // The vector of the cell: the array among what it reads and writes that is no table.
    let mut arrays = reads.iter().copied().chain([&insn.lhs]).map(variable);
    let Some(vector) = arrays.rfind(|v| !is_table(v) && !v.shape.is_empty()) else {
        return Err(format!("`{name}` has no vector beside its matrix"));
    };
    let components = match extents(vector).as_deref() {
        Some([_]) => 1,
        Some([_, components]) => *components,
        Some(_) | None => return Err(format!("`{}` is no vector of degrees of freedom", vector.name)),
    };
    let of = insn.tags.iter().find_map(|tag| tag.strip_prefix("of_"));
    Ok(Product {
        function: of.map_or_else(|| vector.name.clone(), str::to_owned),
        points,
        nodes,
        components,
        tables: BTreeSet::from([table.var]),
        insns: 1,
        word_bytes: variable(table).ty.bytes(),
    })
}

/// The extents of a variable whose shape is constant.
fn extents(v: &Variable) -> Option<Vec<u64>> {
    v.shape.iter().map(Affine::as_constant).map(|n| u64::try_from(n?).ok()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Case;
    use purlin_forms::lowering::{LoweringOptions, lower};
    use purlin_kernels::Operator;

    fn sizes(operator: Operator, dim: usize, degree: usize) -> TilingSizes {
        let form = operator.form(dim, degree).unwrap();
        let lowered = lower(&form, &LoweringOptions::new("k")).unwrap();
        let sizes = tiling_sizes(&lowered.kernel).unwrap();
        assert_eq!(lowered.points, [sizes.quadrature_points as usize]);
        sizes
    }

    #[test]
    fn operators_have_the_sizes_of_their_forms() {
        for Case { operator, dim, degree } in Case::all() {
            let s = sizes(operator, dim, degree);
            let nodes = (1..=dim).fold(1, |n, k| n * (degree + k) / k) as u64;
            let (matrices, names) = match operator {
                Operator::Mass => (1, vec!["u"]),
                Operator::Helmholtz => (dim + 1, vec!["u"]),
                Operator::Laplace | Operator::Elasticity => (dim, vec!["u"]),
                Operator::Hyperelasticity => (dim, vec!["u", "du"]),
            };
            let components = if operator.is_vector() { dim } else { 1 };
            let space = |name: &str| SpaceSizes {
                name: name.into(),
                nodes,
                components: components as u64,
                derivatives: (components * matrices) as u64,
                matrices: matrices as u64,
            };
            let trial: Vec<SpaceSizes> = names.into_iter().map(space).collect();
            assert_eq!((s.trial, s.word_bytes), (trial, 8), "{operator} {dim}-D P{degree}");
            assert_eq!(s.test, space(&s.test.name), "{operator} {dim}-D P{degree}");
        }
    }

    #[test]
    fn other_kernels_are_refused() {
        let text = "kernel copy\n\nparam n: i32\narg y: f64[n] out\narg x: f64[n] in\n\nfor i in 0..n\n  s: y[i] = x[i]\n";
        let error = tiling_sizes(&purlin_ir::text::parse(text).unwrap()).unwrap_err();
        assert_eq!(error.found, "no instruction is labelled `quadrature`");
    }
}
