//! Tiles a nest along directions of its own.

use super::map_inames::nest;
use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::{Polyhedral, Side, is_symbol};
use kingpost_ir::{Affine, AxisTag, Constraint, Domain, Iname, InameId, Kernel, text};
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
use kingpost_steps::tree::replace_loop;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest side of a tile.
const MAX_SIZE: i64 = 1 << 20;

/// Puts loops over tiles around a perfect nest, whose iterations keep their order inside a tile.
///
/// # Rewrite
/// With the rows `t` and `t + i` and sizes of 4:
/// ```text
/// for t in 0..m   =>   for t_o in 0..ceil(m/4)
///   for i in 0..n        for i_o in t_o..min(ceil((4*t_o + n + 3)/4), ceil((m + n - 1)/4))
///     S(t, i)              for t in max(4*t_o, 4*i_o - n + 1)..min(4*t_o + 4, m)
///                            for i in max(0, 4*i_o - t)..min(4*i_o - t + 4, n)
///                              S(t, i)
/// ```
/// A tile holds the iterations at which each row has a value in one interval: rectangles by the loops
/// themselves, parallelograms by skewed rows, diamonds by `t + i` and `t - i`. Instructions stay as they
/// are. Bounds are projected over the rationals: some tiles at the border may be empty.
///
/// # Precondition
/// No row decreases along a dependence: with `h` a row and `o` the loops around, `{ s[o, x] -> t[o, x'] in
/// D : h(x') < h(x) }` is empty for every flow, anti and output dependence `D` inside. The reuse of a
/// temporary whose values stay inside one iteration of all the loops does not count. Then a tile needs
/// tiles only that come before it in each direction, so that those of one wave need nothing of each other.
/// If other loops are on axes, the placement must still hold.
///
/// # Errors
/// Unknown inames, those of a reduction, a nest that is not perfect or has tags, rows that are no affine
/// expressions of the loops and parameters, sizes below 1 or beyond 2^20, names that are taken, bounds
/// read from memory or without closed form, a dependence of that direction or that the placement breaks,
/// with two instances.
///
/// # Source
/// Wolfe 1989, on tiling after skewing.
///
/// # Elsewhere
/// PLuTo `--tile`, with diamonds `--partlbtile`; Halide `tile`; isl `isl_schedule_node_band_tile`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TileBand {
    /// The loops, outer first.
    pub loops: Vec<String>,
    /// Lengths of a tile along each row.
    pub sizes: Vec<i64>,
    /// The directions: affine expressions of the loops and parameters; the loops themselves if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// Names of the loops over tiles; those of the loops with `_o` after them if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl TileBand {
    /// Tiles `loops`, outer first, along themselves.
    pub fn new<S: Into<String>>(
        loops: impl IntoIterator<Item = S>,
        sizes: impl IntoIterator<Item = i64>,
    ) -> Self {
        let loops = loops.into_iter().map(Into::into).collect();
        Self { loops, sizes: sizes.into_iter().collect(), by: Vec::new(), names: Vec::new() }
    }

    /// Tiles along other directions.
    #[must_use]
    pub fn by<R: Into<String>>(mut self, rows: impl IntoIterator<Item = R>) -> Self {
        self.by = rows.into_iter().map(Into::into).collect();
        self
    }

    fn rows(&self) -> &[String] {
        if self.by.is_empty() { &self.loops } else { &self.by }
    }

    fn new_names(&self) -> Vec<String> {
        match self.names.as_slice() {
            [] => self.loops.iter().map(|name| format!("{name}_o")).collect(),
            names => names.to_vec(),
        }
    }
}

impl fmt::Display for TileBand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |names: &[String]| {
            let names: Vec<_> = names.iter().map(|n| format!("`{n}`")).collect();
            if names.is_empty() { "nothing".into() } else { names.join(", ") }
        };
        write!(f, "tile {} by {:?}", quoted(&self.loops), self.sizes)?;
        if self.by.is_empty() { Ok(()) } else { write!(f, " along {}", quoted(&self.by)) }
    }
}

/// Their iterations run in one place, one after the other.
const UNTAGGED: Obligation = Obligation::new("tile_band.untagged", "the loops have no tags");

/// Nothing runs between the loops.
const NESTED: Obligation =
    Obligation::new("tile_band.nested", "each loop holds the next one and nothing else");

/// What is projected is all that the bounds say.
const KNOWN_BOUNDS: Obligation = Obligation::new("tile_band.known_bounds", "no bounds are read from memory");

/// Loops can have the projected bounds.
const CLOSED_FORM: Obligation =
    Obligation::new("tile_band.closed_form", "the bounds of tiles have a closed form");

/// A nest, and the loops over its tiles.
pub struct Tiled {
    old: Vec<InameId>,
    /// Domains of the loops over tiles, then of the old ones.
    domains: Vec<Domain>,
}

impl Primitive for TileBand {
    const NAME: &'static str = "tile_band";
    const SUMMARY: &'static str = "Puts loops over tiles, along any directions, around a perfect nest.";

    type Proof = Tiled;
    type Made = Vec<Loop>;

    const OBLIGATIONS: &'static [Obligation] =
        &[UNTAGGED, NESTED, KNOWN_BOUNDS, CLOSED_FORM, ORDER, NO_REDUCTION];
    const KEEPS: Keeps = Keeps::REASSOCIATED;
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Tiled, Refusal> {
        let kernel = analysis.kernel();
        let old = nest(kernel, &self.loops, UNTAGGED, NESTED)?;
        self.check_arguments(kernel)?;
        let rows =
            self.rows().iter().map(|row| self.row(kernel, &old, row)).collect::<Result<Vec<_>, _>>()?;
        let mut with_new = kernel.clone();
        let new = self.add_loops(&mut with_new);
        let domains = self.domains(analysis.next(&with_new).polyhedral(), &old, &new, &rows)?;
        let proof = Tiled { old, domains };
        let after = self.draft(kernel, &proof);
        for (tile, row) in new.iter().zip(&rows) {
            // one row at a time decides, before the old order: none may decrease
            let value = |_, l| match new.contains(&l) {
                true => Some(if l == *tile { row.clone() } else { Affine::default() }),
                false => None,
            };
            let order = Reordering { before: analysis, after: &after, value: &value, whole: &proof.old };
            check_order(&order, &|source, sink| {
                let row = kernel.show_affine(row);
                format!(
                    "`{row}` decreases from `{source}` to `{sink}`; add a multiple of an outer loop to it"
                )
            })?;
        }
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, Tiled { old, domains }: &Tiled) -> Vec<Loop> {
        let new = self.add_loops(kernel);
        for (iname, domain) in new.iter().chain(old).zip(domains) {
            kernel.inames[*iname].domain = domain.clone();
        }
        if let Some(outermost) = old.first() {
            replace_loop(&mut kernel.body, *outermost, &mut |body| {
                wrapped(new.iter().chain([outermost]).copied(), body)
            });
        }
        self.new_names().iter().map(Loop::named).collect()
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let (outer, inner) = p.of(&draw::nested(kernel))?;
        let rows = p.among([
            ["{o}", "{i}"],
            ["{o}", "{o} + {i}"],
            ["{o} + {i}", "{o} - {i}"],
            ["{o}", "2*{o} + {i}"],
        ]);
        let rows = rows.map(|row| row.replace("{o}", &outer).replace("{i}", &inner));
        let sizes = [p.between(1, 4), p.between(2, 5)];
        Some(Self::new([outer, inner], sizes).by(rows))
    }
}

impl TileBand {
    fn add_loops(&self, kernel: &mut Kernel) -> Vec<InameId> {
        let new = self.new_names().into_iter().map(|name| {
            let domain = Domain::universe();
            kernel.inames.push(Iname { name, domain, tag: AxisTag::Sequential })
        });
        new.collect()
    }

    fn check_arguments(&self, kernel: &Kernel) -> Result<(), Refusal> {
        let (rows, sizes, names) = (self.rows().len(), self.sizes.len(), self.new_names());
        if sizes != rows {
            let found = format!("{sizes} sizes for {rows} rows");
            return Err(Refusal::argument("sizes", found, "one for each of them"));
        }
        if names.len() != rows {
            let found = format!("{} names for {rows} rows", names.len());
            return Err(Refusal::argument("names", found, "one for each of them"));
        }
        if let Some(size) = self.sizes.iter().find(|size| !(1..=MAX_SIZE).contains(*size)) {
            return Err(Refusal::argument("sizes", format!("a size is {size}"), "1 to 2^20"));
        }
        for (k, name) in names.iter().enumerate() {
            if names[..k].contains(name) {
                let found = format!("two loops would be called `{name}`");
                return Err(Refusal::argument("names", found, "different names"));
            }
            lookup::free(kernel, name)?;
        }
        Ok(())
    }

    /// A direction.
    fn row(&self, kernel: &Kernel, old: &[InameId], row: &str) -> Result<Affine, Refusal> {
        read_row(kernel, old, row).map_err(|why| {
            let found = format!("`{row}` is no direction{why}");
            Refusal::argument("by", found, "affine expressions of the loops and parameters")
        })
    }

    /// Domains of the loops over tiles, then of the old ones.
    ///
    /// Formula: `{ (o, x) : x in the nest, T_k*o_k <= h_k(x) < T_k*(o_k + 1) }`.
    fn domains(
        &self,
        poly: &Polyhedral,
        old: &[InameId],
        new: &[InameId],
        rows: &[Affine],
    ) -> Result<Vec<Domain>, Refusal> {
        let kernel = &poly.kernel;
        let tiles = new.iter().zip(rows).zip(&self.sizes).flat_map(|((tile, row), size)| {
            let start = Affine::iname(*tile).times(*size);
            [Constraint::le(&start, row), Constraint::lt(row, &start.plus_constant(*size))]
        });
        let mut all = Domain::conjunction(tiles);
        for iname in old {
            all = all.intersect(&kernel.inames[*iname].domain);
            let (_, exact) = poly.domain(&kernel.inames[*iname].domain, Side::Source);
            KNOWN_BOUNDS.decide(exact, || {
                format!("the bounds of `{}` are read from memory; keep the nest", kernel.inames[*iname].name)
            })?;
        }
        let loops = [new, old].concat();
        let others: Vec<_> = kernel.inames.ids().filter(|k| !loops.contains(k)).collect();
        let params = [poly.params.clone(), poly.names(&others, Side::Source)].concat();
        let space = isl::SetSpace::new(&poly.names(&loops, Side::Source), &params);
        let set = isl::Set::from_disjuncts(&space, &poly.domain(&all, Side::Source).0)?;
        let around = isl::Set::universe(&isl::SetSpace::new::<&str, _>(&[], &params))?;
        Loops { poly, loops: &loops, around: &around, closed_form: CLOSED_FORM }.exact_domains(&set)
    }
}

/// A quasi-affine expression of some loops and parameters, or what it is instead.
pub(super) fn read_row(kernel: &Kernel, loops: &[InameId], row: &str) -> Result<Affine, String> {
    let value = |name: &str| match kernel.iname(name) {
        Some(iname) => loops.contains(&iname).then(|| Affine::iname(iname)),
        None => kernel.var(name).filter(|v| is_symbol(kernel, *v)).map(Affine::var),
    };
    text::parse_affine(row, &value)
        .map_err(|errors| errors.errors().first().map_or_else(String::new, |e| format!(": {}", e.message)))
}
