//! Runs a nest along other directions.

use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::{Disjuncts, Side, cross};
use kingpost_ir::{Affine, AxisTag, Domain, Iname, InameId, Kernel, Node};
use kingpost_isl as isl;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::hull::Loops;
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::nest::wrapped;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::ORDER;
use kingpost_steps::proofs::order::{Reordering, check_order};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::Loop;
use kingpost_steps::substitute::{simplify_indices, substitute_iname};
use kingpost_steps::tree::{body_of, insns_of, replace_loop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Largest coefficient of a map.
const MAX_ENTRY: i64 = 1 << 20;

/// Replaces the loops of a perfect nest by those over `matrix * inames + offset`, the first row
/// outermost.
///
/// # Rewrite
/// With the matrix `[[1, 1], [0, 1]]`:
/// ```text
/// for t in 0..m          =>   for t in 0..m + n - 1
///   for i in 0..n               for i in max(0, t - m + 1)..min(t + 1, n)
///     S(t, i)                     S(t - i, i)
/// ```
/// Interchange, reversal, skew and shift are maps of this kind; a map does several of them at once,
/// where no order of single steps may be legal. Bounds are projected over the
/// rationals, so that an outer loop may hold iterations in which an inner one is empty; conditions on loops
/// around and parameters stay.
///
/// # Precondition
/// The matrix `M` is square and unimodular, `det M = 1` or `-1`, so that integer points are mapped
/// onto integer points. No dependence is turned around: with `o` the loops around, `{ s[o, x] ->
/// t[o, x'] in D : M*x' lexicographically before M*x
/// }` is empty for every flow, anti and output dependence `D` inside. The reuse of a temporary
/// whose values stay inside one iteration of all the loops does not count. If other loops are on
/// axes, the placement must still hold.
///
/// # Errors
/// Unknown inames, those of a reduction, a nest that is not perfect or has tags, a matrix of
/// another shape, coefficients beyond 2^20, another determinant, bounds read from memory or without
/// closed form, a dependence of that direction or that the placement breaks, with two instances.
///
/// # Source
/// Banerjee 1993, on unimodular maps.
///
/// # Elsewhere
/// Loopy `affine_map_inames`; PLuTo's hyperplanes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MapInames {
    /// The loops, outer first.
    pub inames: Vec<String>,
    /// A row for each new loop, outer first, with a coefficient for each old one.
    pub matrix: Vec<Vec<i64>>,
    /// What is added to each new loop; nothing if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offset: Vec<i64>,
    /// Names of the new loops; those of the old ones, in their order, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl MapInames {
    /// Maps `inames`, outer first, by a matrix given by its rows.
    pub fn new<S: Into<String>>(
        inames: impl IntoIterator<Item = S>,
        matrix: impl IntoIterator<Item = Vec<i64>>,
    ) -> Self {
        let inames = inames.into_iter().map(Into::into).collect();
        Self { inames, matrix: matrix.into_iter().collect(), offset: Vec::new(), names: Vec::new() }
    }

    /// Adds a constant to each new loop.
    #[must_use]
    pub fn shifted(mut self, offset: impl IntoIterator<Item = i64>) -> Self {
        self.offset = offset.into_iter().collect();
        self
    }

    fn new_names(&self) -> &[String] {
        if self.names.is_empty() { &self.inames } else { &self.names }
    }

    fn offset_of(&self, row: usize) -> i64 {
        self.offset.get(row).copied().unwrap_or(0) // default: no offset is one of zero
    }
}

impl fmt::Display for MapInames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |names: &[String]| {
            let names: Vec<_> = names.iter().map(|n| format!("`{n}`")).collect();
            names.join(", ")
        };
        write!(f, "map {} by {:?}", quoted(&self.inames), self.matrix)?;
        if !self.offset.is_empty() {
            write!(f, " + {:?}", self.offset)?;
        }
        if self.names.is_empty() { Ok(()) } else { write!(f, " into {}", quoted(&self.names)) }
    }
}

/// Their iterations run in one place, one after the other.
const UNTAGGED: Obligation = Obligation::new("map_inames.untagged", "the loops have no tags");

/// Nothing runs between the loops.
const NESTED: Obligation =
    Obligation::new("map_inames.nested", "each loop holds the next one and nothing else");

/// What is projected is all that the bounds say.
const KNOWN_BOUNDS: Obligation = Obligation::new("map_inames.known_bounds", "no bounds are read from memory");

/// Loops can have the projected bounds.
const CLOSED_FORM: Obligation =
    Obligation::new("map_inames.closed_form", "the bounds of the mapped nest have a closed form");

/// A nest, and the loops that run over its image.
pub struct Image {
    old: Vec<InameId>,
    /// The values of the old loops, by the ids that the new ones will have.
    values: Vec<Affine>,
    /// Domains of the new loops.
    domains: Vec<Domain>,
    /// The body of the innermost loop.
    body: Vec<Node>,
}

impl Primitive for MapInames {
    const NAME: &'static str = "map_inames";
    const SUMMARY: &'static str = "Replaces the loops of a perfect nest by an affine map of them.";

    type Proof = Image;
    type Made = Vec<Loop>;

    const OBLIGATIONS: &'static [Obligation] =
        &[UNTAGGED, NESTED, KNOWN_BOUNDS, CLOSED_FORM, ORDER, NO_REDUCTION];
    const KEEPS: Keeps = Keeps::REASSOCIATED;

    fn check(&self, analysis: &Analysis) -> Result<Image, Refusal> {
        let kernel = analysis.kernel();
        let old = nest(kernel, &self.inames, UNTAGGED, NESTED)?;
        self.check_shape()?;
        self.check_names(kernel)?;
        let inverse = inverse(&self.matrix)?;
        let mut with_new = kernel.clone();
        let new = new_loops(&mut with_new, old.len());
        let values: Vec<Affine> = inverse.iter().map(|row| self.preimage(row, &new)).collect();
        let domains = domains(&analysis.next(&with_new), &old, &new, &values)?;
        let body = body_of(kernel, old.last().copied())?.to_vec();
        let proof = Image { old, values, domains, body };
        let after = self.draft(kernel, &proof);
        let value = |_, l| {
            let row = new.iter().position(|n| *n == l)?;
            let terms = proof.old.iter().zip(&self.matrix[row]);
            let sum = terms.fold(Affine::default(), |sum, (i, c)| sum.plus(&Affine::iname(*i).times(*c)));
            Some(sum.plus_constant(self.offset_of(row)))
        };
        let order = Reordering { before: analysis, after: &after, value: &value, whole: &proof.old };
        check_order(&order, &|source, sink| {
            format!(
                "choose rows whose first nonzero product with every dependence between `{source}` and `{sink}` is positive"
            )
        })?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, Image { old, values, domains, body }: &Image) -> Vec<Loop> {
        let new = new_loops(kernel, old.len());
        for (iname, domain) in new.iter().zip(domains) {
            kernel.inames[*iname].domain = domain.clone();
        }
        for (iname, value) in old.iter().zip(values) {
            substitute_iname(kernel, *iname, value);
        }
        simplify_indices(kernel, &insns_of(body));
        let nest = wrapped(new.iter().copied(), body.clone());
        if let Some(outermost) = old.first() {
            replace_loop(&mut kernel.body, *outermost, &mut |_| nest.clone());
        }
        for (iname, name) in new.iter().zip(self.new_names()) {
            kernel.inames[*iname].name.clone_from(name);
        }
        self.new_names().iter().map(Loop::named).collect()
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let (outer, inner) = p.of(&draw::nested(kernel))?;
        let maps = [[1, 1, 0, 1], [0, 1, 1, 0], [-1, 0, 0, 1], [2, 1, 1, 1], [1, 0, -3, 1], [1, 0, 0, -1]];
        let [a, b, c, d] = p.among(maps);
        let offset = [p.between(-2, 2), p.between(0, 1)];
        Some(Self::new([outer, inner], [vec![a, b], vec![c, d]]).shifted(offset))
    }
}

/// Loops that are still to have names and domains.
fn new_loops(kernel: &mut Kernel, count: usize) -> Vec<InameId> {
    let new = (0..count).map(|k| {
        // `#` cannot stand in names: these meet none of the old ones until the old ones are gone
        let (name, domain) = (format!("#{k}"), Domain::universe());
        kernel.inames.push(Iname { name, domain, tag: AxisTag::Sequential })
    });
    new.collect()
}

impl MapInames {
    fn check_shape(&self) -> Result<(), Refusal> {
        let n = self.inames.len();
        if self.matrix.len() != n || self.matrix.iter().any(|row| row.len() != n) {
            let rows: Vec<_> = self.matrix.iter().map(|row| row.len().to_string()).collect();
            let rows = if rows.is_empty() { "no".into() } else { rows.join(", ") };
            let found = format!("the matrix has rows of {rows} coefficients");
            let needed = format!("{n} rows of {n}, one for each loop");
            return Err(Refusal::argument("matrix", found, needed));
        }
        if !self.offset.is_empty() && self.offset.len() != n {
            let found = format!("the offset has {} entries", self.offset.len());
            return Err(Refusal::argument("offset", found, format!("{n}, one for each loop")));
        }
        for (argument, entries) in [("matrix", &self.matrix.concat()), ("offset", &self.offset)] {
            if let Some(c) = entries.iter().find(|c| c.unsigned_abs() > MAX_ENTRY.unsigned_abs()) {
                let found = format!("the coefficient {c} is beyond 2^20");
                return Err(Refusal::argument(argument, found, "smaller ones"));
            }
        }
        Ok(())
    }

    fn check_names(&self, kernel: &Kernel) -> Result<(), Refusal> {
        let (names, loops) = (self.new_names(), self.inames.len());
        if names.len() != loops {
            let found = format!("{} names for {loops} loops", names.len());
            return Err(Refusal::argument("names", found, "one for each of them"));
        }
        for (k, name) in names.iter().enumerate() {
            if names[..k].contains(name) {
                let found = format!("two loops would be called `{name}`");
                return Err(Refusal::argument("names", found, "different names"));
            }
            if !self.inames.contains(name) {
                lookup::free(kernel, name)?;
            }
        }
        Ok(())
    }

    /// The value of an old loop, by its row of the inverse.
    fn preimage(&self, row: &[i64], new: &[InameId]) -> Affine {
        let terms = row.iter().zip(new).enumerate();
        terms.fold(Affine::default(), |sum, (k, (c, i))| {
            sum.plus(&Affine::iname(*i).plus_constant(-self.offset_of(k)).times(*c))
        })
    }
}

/// The loops of these names, which must be directly inside each other and without tags.
pub(super) fn nest(
    kernel: &Kernel,
    names: &[String],
    untagged: Obligation,
    nested: Obligation,
) -> Result<Vec<InameId>, Refusal> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let iname = lookup::tree_loop(kernel, name)?;
        let tag = kernel.inames[iname].tag;
        untagged.require(tag == AxisTag::Sequential, || {
            format!("`{name}` is tagged {tag}; tag it sequential, change the nest, then tag the result")
        })?;
        found.push(iname);
    }
    if found.is_empty() {
        return Err(Refusal::argument("inames", "no loop is named", "those of a nest, outer first"));
    }
    for pair in found.windows(2) {
        let body = body_of(kernel, pair[0])?;
        nested.require(matches!(body, [Node::Loop(only, _)] if *only == pair[1]), || {
            format!(
                "`{}` does not hold `{}` and nothing else; name the loops of a perfect nest, outer first",
                kernel.inames[pair[0]].name, kernel.inames[pair[1]].name
            )
        })?;
    }
    Ok(found)
}

/// Domains of the new loops: together they say what those of the old ones say.
fn domains(
    analysis: &Analysis,
    old: &[InameId],
    new: &[InameId],
    values: &[Affine],
) -> Result<Vec<Domain>, Refusal> {
    let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
    let mut all: Disjuncts = vec![Vec::new()];
    for iname in old {
        let mut domain = kernel.inames[*iname].domain.clone();
        for (i, value) in old.iter().zip(values) {
            domain = domain.substitute(&|a| (*a == kingpost_ir::Atom::Iname(*i)).then(|| value.clone()));
        }
        let (disjuncts, exact) = poly.domain(&domain, Side::Source);
        KNOWN_BOUNDS.decide(exact, || {
            format!("the bounds of `{}` are read from memory; keep the nest", kernel.inames[*iname].name)
        })?;
        all = cross(&all, &disjuncts);
    }
    let dims = poly.names(new, Side::Source);
    let outer: Vec<_> = kernel.inames.ids().filter(|k| !old.contains(k) && !new.contains(k)).collect();
    let mut params = poly.params.clone();
    params.extend(poly.names(&outer, Side::Source));
    let space = isl::SetSpace::new(&dims, &params);
    let set = isl::Set::from_disjuncts(&space, &all)?;
    let around = isl::Set::universe(&isl::SetSpace::new::<&str, _>(&[], &params))?;
    Loops { poly, loops: new, around: &around, closed_form: CLOSED_FORM }.exact_domains(&set)
}

/// The inverse of a square matrix of integers.
///
/// Row operations bring `[M | I]` to `[I | M^-1]`; the pivots that Euclid's algorithm leaves are 1
/// only if `M` is unimodular.
///
/// # Errors
/// [`Refusal::Argument`] with the determinant if it is not 1 or -1; coefficients beyond 64 bits.
fn inverse(matrix: &[Vec<i64>]) -> Result<Vec<Vec<i64>>, Refusal> {
    let n = matrix.len();
    let overflow = || {
        let found = "the inverse of the matrix has coefficients beyond 64 bits";
        Refusal::argument("matrix", found, "smaller ones")
    };
    let mut rows: Vec<Vec<i64>> = matrix.to_vec();
    for (k, row) in rows.iter_mut().enumerate() {
        row.extend((0..n).map(|j| i64::from(j == k)));
    }
    let mut determinant = Some(1_i64);
    for k in 0..n {
        // Euclid's algorithm on column k of the rows below, until one entry is left
        while let Some(r) = (k..n).filter(|r| rows[*r][k] != 0).min_by_key(|r| rows[*r][k].unsigned_abs()) {
            rows.swap(k, r);
            let pivot = rows[k].clone();
            let mut done = true;
            for row in &mut rows[k + 1..] {
                let factor = row[k].div_euclid(pivot[k]);
                subtract(row, factor, &pivot).ok_or_else(overflow)?;
                done &= row[k] == 0;
            }
            if done {
                break;
            }
        }
        determinant = determinant.and_then(|d| d.checked_mul(rows[k][k]));
        if rows[k][k] < 0 {
            rows[k].iter_mut().for_each(|c| *c = -*c);
        }
    }
    if (0..n).any(|k| rows[k][k] != 1) {
        let size = determinant.map_or_else(|| "beyond 64 bits".into(), |d| d.unsigned_abs().to_string());
        return Err(Refusal::argument(
            "matrix",
            format!("the determinant of the matrix is {size} up to its sign"),
            "1: the map would not reach every iteration once",
        ));
    }
    for k in (0..n).rev() {
        let pivot = rows[k].clone();
        for row in &mut rows[..k] {
            let factor = row[k];
            subtract(row, factor, &pivot).ok_or_else(overflow)?;
        }
    }
    Ok(rows.into_iter().map(|row| row[n..].to_vec()).collect())
}

/// `row - factor * other`, unless it overflows.
fn subtract(row: &mut [i64], factor: i64, other: &[i64]) -> Option<()> {
    for (c, o) in row.iter_mut().zip(other) {
        *c = c.checked_sub(factor.checked_mul(*o)?)?;
    }
    Some(())
}
