//! Makes one array with a component axis of several arrays.

use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, Expr, Kernel, TableData, VarId, VarKind, Variable};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{
    ONLY_ACCESSED, TEMPORARY, check_only_accessed, redirect_accesses, temporary,
};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::Array;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Joins temporaries or tables of one shape into one array with an axis of components: the first
/// axis keeps them apart (a structure of arrays), the last one puts the components of an element
/// next to each other (an array of structures).
///
/// # Rewrite
/// ```text
/// temp u: f64[n]              =>   temp p: f64[n, 2]                  (axis 1)
/// temp v: f64[n]
///   s: u[i] = a[i]                   s: p[i, 0] = a[i]
///   t: v[i] = 2.0*u[i]               t: p[i, 1] = 2.0*p[i, 0]
/// ```
/// Component `k` is the `k`-th of `vars`, also of tables, whose entries become those of one table.
/// `separate_array` is the way back for temporaries. The axes of an argument
/// that has its components in one array already change places by `change_layout`.
///
/// # Precondition
/// All are temporaries, or all are tables. Equal types, shapes and address spaces;
/// `(k, e) -> e with k inserted` keeps different elements different, so that no dependence changes.
/// If loops are on axes, the placement must hold.
///
/// # Errors
/// Fewer than two arrays, one named twice, one that is neither a temporary nor a table, has a
/// layout or shared storage of its own, or is mentioned by a bound or an assumption; a temporary
/// and a table; types, shapes or address spaces that differ; an axis beyond the last; a name that
/// is taken.
///
/// # Elsewhere
/// Loopy `concatenate_arrays`; array of structures.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinArrays {
    /// The temporaries or tables, in the order of the components.
    pub vars: Vec<String>,
    /// Name of the joint array.
    pub into: String,
    /// Where the axis of the components stands, counted from 0.
    pub axis: u32,
}

impl JoinArrays {
    /// Joins `vars` into `into` with the components along `axis`.
    pub fn new<S: Into<String>>(
        vars: impl IntoIterator<Item = S>,
        into: impl Into<String>,
        axis: u32,
    ) -> Self {
        Self { vars: vars.into_iter().map(Into::into).collect(), into: into.into(), axis }
    }
}

impl fmt::Display for JoinArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vars: Vec<_> = self.vars.iter().map(|v| format!("`{v}`")).collect();
        write!(f, "join {} into `{}` along axis {}", vars.join(", "), self.into, self.axis)
    }
}

/// One array is written, or none is.
const ALL_TABLES: Obligation =
    Obligation::new("join_arrays.all_tables", "all arrays are temporaries, or all are tables");

/// Elements have their places in a buffer of their own, in order.
pub(super) const PLAIN: Obligation =
    Obligation::new("plain_temporaries", "the arrays have no layout and no shared storage of their own");

/// One type of elements.
const SAME_TYPE: Obligation = Obligation::new("join_arrays.same_type", "the arrays are of one type");

/// One set of indices.
const SAME_SHAPE: Obligation = Obligation::new("join_arrays.same_shape", "the arrays are of one shape");

/// One kind of memory.
const SAME_SPACE: Obligation =
    Obligation::new("join_arrays.same_space", "the arrays are in memory of one kind");

/// Arrays that are alike, in the order of the components.
pub struct Components {
    vars: Vec<VarId>,
    /// The joint array.
    into: Variable,
}

impl Primitive for JoinArrays {
    const NAME: &'static str = "join_arrays";
    const SUMMARY: &'static str =
        "Makes one array with an axis of components of several temporaries or tables.";

    type Proof = Components;
    type Made = Array;

    const OBLIGATIONS: &'static [Obligation] =
        &[ALL_TABLES, PLAIN, SAME_TYPE, SAME_SHAPE, SAME_SPACE, TEMPORARY, ONLY_ACCESSED];

    fn check(&self, analysis: &Analysis) -> Result<Components, Refusal> {
        let kernel = analysis.kernel();
        let (first, vars) = match self.tables(kernel)? {
            true => plain_arrays(kernel, &self.vars, "joined", &|name| lookup::var(kernel, name))?,
            false => plain_temporaries(kernel, &self.vars, "joined")?,
        };
        lookup::free(kernel, &self.into)?;
        for var in vars.iter().map(|v| &kernel.vars[*v]) {
            let differ = |what| {
                let (a, b) = (&first.name, &var.name);
                move || {
                    format!("`{a}` and `{b}` differ in their {what}; only arrays that are alike are joined")
                }
            };
            SAME_TYPE.require(var.ty == first.ty, differ("type"))?;
            SAME_SHAPE.require(var.shape == first.shape, differ("shape"))?;
            SAME_SPACE.require(var.space == first.space, differ("address space"))?;
        }
        let (axis, axes) = (self.axis as usize, first.shape.len());
        if axis > axes {
            return Err(Refusal::argument(
                "axis",
                format!("the component axis is {axis}"),
                format!("0 to {axes}, the number of axes there are"),
            ));
        }
        let mut shape = first.shape.clone();
        shape.insert(axis, Affine::constant(i64::try_from(vars.len()).unwrap_or(i64::MAX)));
        let kind = joined_entries(kernel, &vars, axis).map_or(VarKind::Temporary, VarKind::Table);
        let into = Variable::new(&self.into, first.ty, kind, shape, first.space);
        Ok(Components { vars, into })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Components) -> Array {
        let into = kernel.vars.push(proof.into.clone());
        for (k, var) in (0_i64..).zip(&proof.vars) {
            redirect_accesses(kernel, *var, into, &mut |mut index| {
                index.insert(self.axis as usize, Expr::Int(k));
                index
            });
        }
        remove_unmentioned(kernel, &proof.vars);
        Array::named(&self.into)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let (first, second) = p.of(&draw::alike(kernel))?;
        let axis = p.below(draw::axes(kernel, &first) as usize + 1) as u32;
        Some(Self::new([first, second], kernel.fresh_name("joint"), axis))
    }
}

impl JoinArrays {
    /// Whether the arrays are tables, of which no temporary can be one.
    fn tables(&self, kernel: &Kernel) -> Result<bool, Refusal> {
        let is_table = |name: &String| {
            let var = lookup::var(kernel, name)?;
            Ok(matches!(kernel.vars[var].kind, VarKind::Table(_)))
        };
        let tables = self.vars.iter().map(is_table).collect::<Result<Vec<bool>, Refusal>>()?;
        let other = tables.iter().position(|table| *table != tables[0]);
        ALL_TABLES.forbid(other, |k| {
            format!(
                "one of `{}` and `{}` is a table; only arrays that are alike are joined",
                self.vars[0], self.vars[k]
            )
        })?;
        Ok(tables.first() == Some(&true))
    }
}

/// The entries of tables of one shape with an axis of components; none of what has no entries.
fn joined_entries(kernel: &Kernel, vars: &[VarId], axis: usize) -> Option<TableData> {
    fn of<T: Copy>(all: &[&[T]], inner: usize) -> Vec<T> {
        let rows = all[0].len() / inner;
        let row = |k: usize| all.iter().flat_map(move |values| &values[k * inner..(k + 1) * inner]);
        (0..rows).flat_map(row).copied().collect()
    }
    let first = &kernel.vars[*vars.first()?];
    let inner = first.shape[axis..].iter().map(|n| usize::try_from(n.as_constant()?).ok());
    let inner = inner.product::<Option<usize>>()?.max(1);
    macro_rules! joined {
        ($variant:ident) => {{
            let values = vars.iter().map(|v| match &kernel.vars[*v].kind {
                VarKind::Table(TableData::$variant(values)) => Some(&**values),
                _ => None,
            });
            TableData::$variant(of(&values.collect::<Option<Vec<_>>>()?, inner).into())
        }};
    }
    let VarKind::Table(data) = &first.kind else { return None };
    Some(match data {
        TableData::Real(_) => joined!(Real),
        TableData::Int(_) => joined!(Int),
        TableData::Complex(_) => joined!(Complex),
    })
}

/// Temporaries with a row-major buffer of their own, at least two and different ones: the first,
/// and all.
///
/// # Errors
/// The first that is something else.
pub(super) fn plain_temporaries<'k>(
    kernel: &'k Kernel,
    names: &[String],
    done: &str,
) -> Result<(&'k Variable, Vec<VarId>), Refusal> {
    plain_arrays(kernel, names, done, &|name| {
        temporary(kernel, name, &format!("only temporaries are {done}"))
    })
}

/// The same of arrays that `array` finds.
fn plain_arrays<'k>(
    kernel: &'k Kernel,
    names: &[String],
    done: &str,
    array: &dyn Fn(&str) -> Result<VarId, Refusal>,
) -> Result<(&'k Variable, Vec<VarId>), Refusal> {
    let mut found = Vec::new();
    for name in names {
        let var = array(name)?;
        check_only_accessed(kernel, var)?;
        let data = &kernel.vars[var];
        let plain = data.layout.is_row_major() && data.layout.vector_axis.is_none() && data.storage.is_none();
        PLAIN.require(plain, || {
            format!("`{name}` has a layout or shared storage of its own; only arrays without are {done}")
        })?;
        if found.contains(&var) {
            return Err(Refusal::argument("vars", format!("`{name}` is named twice"), "different arrays"));
        }
        found.push(var);
    }
    match found.as_slice() {
        [first, _, ..] => Ok((&kernel.vars[*first], found)),
        [] | [_] => {
            Err(Refusal::argument("vars", format!("{} arrays are to be {done}", found.len()), "two or more"))
        }
    }
}

/// Drops variables that nothing mentions any more.
pub(super) fn remove_unmentioned(kernel: &mut Kernel, vars: &[VarId]) {
    let mut vars = vars.to_vec();
    vars.sort_unstable();
    // from the back, so that the ids in front stay
    for var in vars.into_iter().rev() {
        *kernel = kernel.with_var_fixed(var, 0);
    }
}
