//! Mappings: any strategy with its arguments, and combinators around it.

use super::error::{MappingError, Stopped};
use super::work::{self, Work};
use super::{Arguments, Combinator, CombinedOrbits, Needs, Strategy};
use crate::tiling::TilingSizes;
use kingpost_forms::CellKernel;
use kingpost_ir::Kernel;
use kingpost_primitives::Recipe;
use serde::{Serialize, Serializer};
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// How a kernel is mapped onto a device: a strategy with its arguments, whichever crate it comes from,
/// which the tuner chooses and records.
///
/// ```
/// use kingpost_strategies::Mapping;
/// use kingpost_strategies::{ConstantCells, StagedCells};
///
/// let mapping = Mapping::from(StagedCells { cells: 32, constant_tables: true });
/// assert_eq!(mapping.name(), "staged_cells");
/// assert_eq!(mapping.get::<StagedCells>().map(|staged| staged.cells), Some(32));
/// assert!(mapping.get::<ConstantCells>().is_none());
/// ```
#[derive(Clone)]
pub struct Mapping(Arc<dyn Erased>);

/// What is asked of a strategy whose type is not known.
trait Erased: Send + Sync {
    fn name(&self) -> &'static str;
    fn arguments(&self) -> &dyn Any;
    fn then(&self) -> Option<&Mapping>;
    fn equals(&self, other: &dyn Any) -> bool;
    fn hash(&self, state: &mut dyn Hasher);
    fn debug(&self) -> &dyn fmt::Debug;
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    fn fields(&self) -> &dyn erased_serde::Serialize;
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped>;
    fn in_orbits(&self, on: &mut Work<'_>, how: CombinedOrbits) -> Result<(), Stopped>;
    fn needs(&self) -> Needs;
    fn is_over_modes(&self) -> bool;
    fn with_parts(&self, parts: &[u64]) -> Option<Mapping>;
    fn rescaled(&self, from: &TilingSizes, to: &TilingSizes) -> Mapping;
    fn decisions(&self, form: &dyn CellKernel) -> Result<Vec<String>, MappingError>;
}

/// A strategy that nothing follows.
struct Last<S>(S);

impl<S: Strategy> Erased for Last<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn arguments(&self) -> &dyn Any {
        &self.0
    }

    fn then(&self) -> Option<&Mapping> {
        None
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<S>() == Some(&self.0)
    }

    fn hash(&self, mut state: &mut dyn Hasher) {
        Hash::hash(&self.0, &mut state);
    }

    fn debug(&self) -> &dyn fmt::Debug {
        &self.0
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }

    fn fields(&self) -> &dyn erased_serde::Serialize {
        &self.0
    }

    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        self.0.apply(on)
    }

    fn in_orbits(&self, on: &mut Work<'_>, how: CombinedOrbits) -> Result<(), Stopped> {
        self.0.in_orbits(on, how)
    }

    fn needs(&self) -> Needs {
        self.0.needs()
    }

    fn is_over_modes(&self) -> bool {
        self.0.is_over_modes()
    }

    fn with_parts(&self, parts: &[u64]) -> Option<Mapping> {
        self.0.with_parts(parts).map(Mapping::from)
    }

    fn rescaled(&self, from: &TilingSizes, to: &TilingSizes) -> Mapping {
        self.0.rescaled(from, to).into()
    }

    fn decisions(&self, _: &dyn CellKernel) -> Result<Vec<String>, MappingError> {
        Ok(Vec::new())
    }
}

/// A combinator, and what follows.
struct Combined<C> {
    first: C,
    then: Mapping,
}

impl<C: Combinator> Erased for Combined<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn arguments(&self) -> &dyn Any {
        &self.first
    }

    fn then(&self) -> Option<&Mapping> {
        Some(&self.then)
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<C>() == Some(&self.first)
    }

    fn hash(&self, mut state: &mut dyn Hasher) {
        Hash::hash(&self.first, &mut state);
    }

    fn debug(&self) -> &dyn fmt::Debug {
        &self.first
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.show(&self.then, f)
    }

    fn fields(&self) -> &dyn erased_serde::Serialize {
        &self.first
    }

    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        self.first.apply(on, &self.then)
    }

    fn in_orbits(&self, _: &mut Work<'_>, how: CombinedOrbits) -> Result<(), Stopped> {
        let own = Mapping::combined(self.first.clone(), self.then.clone());
        Err(how.refused(&own))
    }

    fn needs(&self) -> Needs {
        self.first.needs().and(self.then.needs())
    }

    fn is_over_modes(&self) -> bool {
        self.first.is_over_modes(&self.then)
    }

    fn with_parts(&self, parts: &[u64]) -> Option<Mapping> {
        Some(self.first.clone().before(self.then.with_parts(parts)?))
    }

    fn rescaled(&self, from: &TilingSizes, to: &TilingSizes) -> Mapping {
        self.first.clone().before(self.then.rescaled(from, to))
    }

    fn decisions(&self, form: &dyn CellKernel) -> Result<Vec<String>, MappingError> {
        self.first.decisions(form)
    }
}

impl<S: Strategy> From<S> for Mapping {
    fn from(strategy: S) -> Self {
        Self(Arc::new(Last(strategy)))
    }
}

impl Mapping {
    /// A combinator, and then another mapping.
    pub(super) fn combined(first: impl Combinator, then: Self) -> Self {
        Self(Arc::new(Combined { first, then }))
    }

    /// The name of its outermost strategy or combinator in JSON: `single_cell`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Its outermost strategy or combinator, if it is of this type.
    #[must_use]
    pub fn get<A: Arguments>(&self) -> Option<&A> {
        self.0.arguments().downcast_ref()
    }

    /// The strategy or combinator of this type, however many combinators are around it.
    #[must_use]
    pub fn find<A: Arguments>(&self) -> Option<&A> {
        self.get().or_else(|| self.then()?.find())
    }

    /// What follows a combinator; none of a strategy.
    #[must_use]
    pub fn then(&self) -> Option<&Self> {
        self.0.then()
    }

    /// What it needs of a device.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.0.needs()
    }

    /// Whether its loops run over modes instead of quadrature points.
    #[must_use]
    pub fn is_over_modes(&self) -> bool {
        self.0.is_over_modes()
    }

    /// The same with these numbers of degrees of freedom gathered and scattered separately, as
    /// [straight cells](crate::StraightCells) have them; none where nothing is transferred
    /// so.
    #[must_use]
    pub fn with_parts(&self, parts: &[u64]) -> Option<Self> {
        self.0.with_parts(parts)
    }

    /// The same for a form of other sizes: with as many tiles along each loop.
    #[must_use]
    pub fn rescaled(&self, from: &TilingSizes, to: &TilingSizes) -> Self {
        self.0.rescaled(from, to)
    }

    /// What it decides for a form, a line each: what the integer program of sharing elimination
    /// factorises, the monomials that may be evaluated in advance.
    ///
    /// # Errors
    /// As [`Mapping::apply`].
    pub fn decisions(&self, form: &dyn CellKernel) -> Result<Vec<String>, MappingError> {
        self.0.decisions(form)
    }

    /// Maps a form, or a kernel whose tags say its roles; returns the kernel with the recipe that
    /// made it. Its steps start from the form as the mapping [lowers it](Recipe::lowering).
    ///
    /// # Errors
    /// A kernel without the roles that the mapping needs, the parameter that makes no sense, the
    /// step that was refused; values of holes, which belong to a schedule.
    pub fn apply(&self, form: &dyn CellKernel) -> Result<(Kernel, Recipe), MappingError> {
        work::apply(self, form)
    }

    /// Applies it to what other strategies started.
    pub(super) fn apply_to(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        self.0.apply(on)
    }

    /// Applies it with degrees of freedom combined in orbits.
    pub(crate) fn in_orbits(&self, on: &mut Work<'_>, how: CombinedOrbits) -> Result<(), Stopped> {
        self.0.in_orbits(on, how)
    }
}

impl PartialEq for Mapping {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(other.0.arguments()) && self.then() == other.then()
    }
}

impl Eq for Mapping {}

impl Hash for Mapping {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
        self.0.hash(state);
        self.then().hash(state);
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug().fmt(f)?;
        self.then().map_or(Ok(()), |then| write!(f, ", {then:?}"))
    }
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show(f)
    }
}

/// The arguments of a strategy, to be serialised.
struct Fields<'m>(&'m dyn Erased);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        erased_serde::serialize(self.0.fields(), serializer)
    }
}

/// `{"strategy": "staged_cells", "cells": 32, "constant_tables": true}`: the name, arguments in the order
/// of their declaration, `then`. [`StrategySet::mapping`](crate::StrategySet::mapping) reads it.
impl Serialize for Mapping {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tagged<'m> {
            strategy: &'static str,
            #[serde(flatten)]
            fields: Fields<'m>,
            #[serde(skip_serializing_if = "Option::is_none")]
            then: Option<&'m Mapping>,
        }
        Tagged { strategy: self.name(), fields: Fields(&*self.0), then: self.then() }.serialize(serializer)
    }
}
