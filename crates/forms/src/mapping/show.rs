//! Mappings in words.

use super::Mapping;
use crate::strategies::{FactorCopy, Objective};
use std::fmt;

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequential => f.write_str("as it is written"),
            Self::SingleCell { cells } => write!(f, "single cell, {cells} a group"),
            Self::ConstantCells { cells } => write!(f, "single cell, {cells} a group, constant tables"),
            Self::PointTiles { cells, sums } => {
                write!(f, "tiles of points, {cells} cells a group, {sums} sums, constant tables")
            }
            Self::StagedCells { cells, constant_tables } => {
                let tables = if *constant_tables { ", constant tables" } else { "" };
                write!(f, "staged cells, {cells} a group{tables}")
            }
            Self::StraightCells { cells, whole_groups, parts } => {
                let whole = if *whole_groups { ", whole groups" } else { "" };
                write!(f, "straight cells, {cells} a group{whole}")?;
                transfers(f, parts)
            }
            Self::ListedCells(lists) => write!(f, "listed cells, {lists}"),
            Self::LoopLanes { lanes } => write!(f, "loops in lanes, {lanes} columns a vector"),
            Self::OwnedRows { owners } => write!(f, "owned rows, {owners} a group"),
            Self::SummedCells { cells, constant_tables } => {
                let tables = if *constant_tables { ", constant tables" } else { "" };
                write!(f, "summed cells, {cells} a group{tables}")
            }
            Self::FactorisedCells { cells } => write!(f, "factorised sums, {cells} cells a group"),
            Self::FactorisedPlanes { cells } => {
                write!(f, "factorised sums by layers, {cells} cells a group")
            }
            Self::FactorisedLines { cells, literal_tables, factors } => {
                let tables = if *literal_tables { ", literal tables" } else { "" };
                write!(f, "factorised sums by lines, {cells} cells a group{tables}{}", copied(*factors))
            }
            Self::MatrixCells { sub_groups, groups, kept_tables, overlapped, parts } => {
                let tables = if *kept_tables == 1 { "table" } else { "tables" };
                let ahead = if *overlapped { ", copies ahead" } else { "" };
                write!(
                    f,
                    "matrix cells, {sub_groups} sub-groups, {groups} groups, {kept_tables} {tables} kept{ahead}"
                )?;
                transfers(f, parts)
            }
            Self::MatrixBasis { resident_groups: None } => f.write_str("matrix basis"),
            Self::MatrixBasis { resident_groups: Some(groups) } => {
                write!(f, "matrix basis, {groups} at a time")
            }
            Self::MatrixGroups { resident_groups, point_tiles, short_terms, one_sub_group, parts } => {
                f.write_str("matrix groups")?;
                f.write_str(if *one_sub_group { " of one sub-group" } else { "" })?;
                resident_groups.map_or(Ok(()), |groups| write!(f, ", {groups} at a time"))?;
                point_tiles.map_or(Ok(()), |tiles| write!(f, ", {} points at a time", 8 * tiles))?;
                f.write_str(if *short_terms { ", short terms" } else { "" })?;
                transfers(f, parts)
            }
            Self::Tiling(tiling) => tiling.fmt(f),
            Self::StagedTiling(tiling) => write!(f, "{tiling}, staged"),
            Self::Modes { then } => write!(f, "modes, {then}"),
            Self::FewestOperations { memory, objective: Objective::Operations, then } => {
                write!(f, "fewest operations, tables of {memory} bytes, {then}")
            }
            Self::FewestOperations { memory, objective: Objective::OperationsAndMisses, then } => {
                write!(f, "fewest operations and misses, tables of {memory} bytes, {then}")
            }
            Self::SharingElimination { then } => write!(f, "sharing eliminated, {then}"),
            Self::StoredFactors { then } => write!(f, "stored factors, {then}"),
            Self::Rules { scheme, then } => write!(f, "rules `{scheme}`, {then}"),
            Self::Orbits { resident_groups, points, then } => {
                write!(f, "orbits{}, {then}", if *points { " of points" } else { "" })?;
                resident_groups.map_or(Ok(()), |groups| write!(f, ", {groups} at a time"))
            }
            Self::DynamicLocal { then } => write!(f, "{then}, dynamic local memory"),
            Self::Schedule { values } => {
                let values: Vec<_> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                f.write_str(&values.join(", "))
            }
        }
    }
}

/// Where factors are copied to.
const fn copied(factors: Option<FactorCopy>) -> &'static str {
    match factors {
        None => "",
        Some(FactorCopy::Private) => ", factors in registers",
        Some(FactorCopy::Local) => ", factors in local memory",
    }
}

/// Degrees of freedom that are transferred by themselves.
fn transfers(f: &mut fmt::Formatter<'_>, parts: &[u64]) -> fmt::Result {
    if parts.is_empty() {
        return Ok(());
    }
    let parts: Vec<String> = parts.iter().map(u64::to_string).collect();
    write!(f, ", transfers of {}", parts.join(" + "))
}
