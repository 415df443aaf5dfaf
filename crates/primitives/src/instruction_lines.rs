//! Chained contractions by FP64 matrix instructions, a line of nodes at a time.

use crate::ScheduleSteps;
use crate::intrinsics::{self, MMA_M16N8K8_F64};
use crate::primitives::{
    DeclareCallee, JoinArrayAxes, JoinInames, PadArray, ReplaceWithIntrinsic, SetAddressSpace,
    SkipZeroBlocks, SplitArrayAxis, TransposeArrayAxes,
};
use crate::schedule::Loop;
use crate::{Schedule, TransformError};
use kingpost_ir::{AddressSpace, AxisTag};

type Steps = Result<(), TransformError>;

/// Columns of a tile, and lines that are rows of half an instruction.
const TILE: i64 = 8;

/// Work-items of a sub-group, as the instruction has them.
const LANES: i64 = intrinsics::width(MMA_M16N8K8_F64);

/// Pads a local array with planes along `axis`, lines and nodes after it, so that sixteen work-items
/// which read along any two axes meet in no bank: the strides of lines and of planes are then four
/// doubles more than a multiple of sixteen, or less.
///
/// # Errors
/// A step that is refused: an array that has no such axes.
pub fn pad_lines(s: &mut Schedule, array: &str, axis: u32) -> Steps {
    s.apply(PadArray::new(array, axis + 2, 4))?;
    s.apply(PadArray::new(array, axis + 1, 1)).map(drop)
}

/// Chained contractions of three-dimensional arrays, a line of nodes at a time, on their way to the axes
/// of a launch.
///
/// A sub-group has eight lines of each of two planes at a time: sixteen rows of the first factor of
/// `mma.m16n8k8`, with a matrix as the second one. What an instruction gives lies as the next one takes
/// its first factor, so that contractions along one axis follow each other in registers; an array in
/// local memory lies between those along two axes.
///
/// First every nest is dealt out ([`deal`](Self::deal), [`contract`](Self::contract)) and every array
/// that stays in registers is laid out ([`hold`](Self::hold)), then [`place`](Self::place) puts all of
/// it on the axes and makes the products instructions.
pub struct InstructionLines {
    /// Along `l.0`.
    lanes: Vec<Loop>,
    /// Along `l.1`.
    sub_groups: Vec<Loop>,
    /// Written out.
    own: Vec<Loop>,
    /// Those along `l.0` that are an instruction each.
    calls: Vec<Loop>,
    /// In the registers of a sub-group.
    fragments: Vec<String>,
    /// Planes of lines of a sub-group.
    planes: i64,
    /// Nodes of a line, 8 or 16.
    nodes: i64,
    /// Whether the two tiles of a line are its even and odd parts.
    parities: bool,
}

impl InstructionLines {
    /// Of arrays with `nodes` along every axis, 8 or 16, whose planes of lines are dealt
    /// out to `sub_groups`: a divisor of half of `nodes`.
    #[must_use]
    pub const fn new(nodes: i64, sub_groups: i64) -> Self {
        Self {
            lanes: Vec::new(),
            sub_groups: Vec::new(),
            own: Vec::new(),
            calls: Vec::new(),
            fragments: Vec::new(),
            planes: nodes / sub_groups,
            nodes,
            parities: false,
        }
    }

    /// Of arrays of even and odd parts, eight of each along every axis
    /// ([`DecomposeParity`](crate::primitives::DecomposeParity)). Matrices have two blocks, and
    /// a sub-group has the same planes of both parities.
    #[must_use]
    pub fn of_parities(sub_groups: i64) -> Self {
        Self { parities: true, ..Self::new(2 * TILE, sub_groups) }
    }

    /// A nest over planes, lines of a plane and the nodes of a line, dealt out as an instruction has its
    /// result: line `g` of plane `half` and node `4*part + t` belong to work-item `4*g + t`.
    ///
    /// # Errors
    /// A step that is refused: loops that are no perfect nest of `nodes` iterations each.
    pub fn deal<I: Into<String>>(&mut self, s: &mut Schedule, nest: [I; 3]) -> Steps {
        let [plane, line, node] = nest.map(Into::into);
        let [sub_group, tile, half] = self.split_planes(s, &plane)?;
        let (lines, g) = self.split_tiles(s, &line, "lines")?;
        let (nodes, node) = self.split_tiles(s, &node, "nodes")?;
        let [part, t] = s.split_as(&node, TILE / 2, ["part", "place"])?;
        let own: Vec<Loop> =
            [tile].into_iter().chain(lines).chain([half]).chain(nodes).chain([part]).collect();
        s.reorder([&sub_group, &g, &t].into_iter().chain(&own))?;
        self.lanes.push(join(s, &g, &t)?);
        self.sub_groups.push(sub_group);
        self.own.extend(own);
        Ok(())
    }

    /// A nest over pairs of elements, eight along each axis, whose instructions write or read both
    /// parities: node `4*part + t` of line `g` of a plane belongs to work-item `4*g + t`.
    ///
    /// # Errors
    /// As [`Self::deal`].
    pub fn deal_pairs<I: Into<String>>(&mut self, s: &mut Schedule, nest: [I; 3]) -> Steps {
        let [plane, g, node] = nest.map(Into::into);
        let [sub_group, tile] = s.split_as(plane, self.planes / 2, ["sub_group", "tile"])?;
        let [part, t] = s.split_as(&node, TILE / 2, ["part", "place"])?;
        let g = Loop::named(&g);
        s.reorder([&sub_group, &g, &t, &tile, &part])?;
        self.lanes.push(join(s, &g, &t)?);
        self.sub_groups.push(sub_group);
        self.own.extend([tile, part]);
        Ok(())
    }

    /// A perfect nest that copies elements from outside the group, one after the other along the
    /// work-items of a group, in rounds that are written out.
    ///
    /// # Errors
    /// A step that is refused: loops that are no perfect nest.
    pub fn deal_rounds<I: Into<String>>(&mut self, s: &mut Schedule, nest: [I; 3]) -> Steps {
        let [plane, line, node] = nest.map(Into::into);
        let line = s.join(plane, line)?;
        let element = s.join(&line, node)?;
        let sub_groups = self.nodes / self.planes;
        let [rounds, items] = s.split_as(element, LANES * sub_groups, ["rounds", "items"])?;
        let [sub_group, lane] = s.split_as(items, LANES, ["sub_group", "lane"])?;
        self.lanes.push(lane);
        self.sub_groups.push(sub_group);
        self.own.push(rounds);
        Ok(())
    }

    /// A nest with the sum of a contraction innermost, an instruction for eight lines of two planes.
    ///
    /// # Errors
    /// As [`Self::deal`].
    pub fn contract<I: Into<String>>(&mut self, s: &mut Schedule, nest: [I; 3], terms: &str) -> Steps {
        let [plane, line, node] = nest.map(Into::into);
        let [sub_group, tile, half] = self.split_planes(s, &plane)?;
        let (lines, g) = self.split_tiles(s, &line, "lines")?;
        let (nodes, node) = self.split_tiles(s, &node, "nodes")?;
        let (mut terms, term) = self.split_tiles(s, terms, "terms")?;
        if self.parities
            && let Some((block, of_result)) = terms.take().zip(nodes.as_ref())
        {
            s.apply(SkipZeroBlocks::new(block, of_result))?;
        }
        let [part, t] = s.split_as(&node, TILE / 2, ["part", "place"])?;
        let [term_part, term] = s.split_as(&term, TILE / 2, ["term_part", "term"])?;
        let tiles: Vec<Loop> = [tile].into_iter().chain(lines).chain(nodes).chain(terms).collect();
        let instruction = [&g, &t, &half, &part, &term_part, &term];
        s.reorder([&sub_group].into_iter().chain(&tiles).chain(instruction))?;
        let lane = join(s, &g, &t)?;
        self.lanes.push(lane.clone());
        self.calls.push(lane);
        self.sub_groups.push(sub_group);
        self.own.extend(tiles);
        Ok(())
    }

    /// The tiles of a loop, if it has several, and the loop over one of them.
    fn split_tiles(
        &self,
        s: &mut Schedule,
        along: &str,
        of: &str,
    ) -> Result<(Option<Loop>, Loop), TransformError> {
        if self.nodes == TILE {
            return Ok((None, Loop::named(along)));
        }
        let [tiles, inner] = s.split_as(along, TILE, [of, "inner"])?;
        Ok((Some(tiles), inner))
    }

    fn split_planes(&self, s: &mut Schedule, plane: &str) -> Result<[Loop; 3], TransformError> {
        if self.parities {
            let [half, plane] = s.split_as(plane, TILE, ["half", "plane"])?;
            let [sub_group, tile] = s.split_as(plane, self.planes / 2, ["sub_group", "tile"])?;
            return Ok([sub_group, tile, half]);
        }
        let [sub_group, planes] = s.split_as(plane, self.planes, ["sub_group", "planes"])?;
        let [tile, half] = s.split_as(planes, 2, ["tile", "half"])?;
        Ok([sub_group, tile, half])
    }

    /// Lays an array of three axes out as [`Self::deal`] deals nests: `axes` are those of planes, of
    /// lines and of nodes of a line.
    ///
    /// # Errors
    /// A step that is refused: an array that is no temporary, or has other extents.
    pub fn hold(&mut self, s: &mut Schedule, array: &str, axes: [u32; 3]) -> Steps {
        let order = |order: &[u32]| TransposeArrayAxes { var: array.into(), order: order.to_vec() };
        if axes != [0, 1, 2] {
            s.apply(order(&axes))?;
        }
        let split = |axis, factor| SplitArrayAxis { var: array.into(), axis, factor };
        let planes =
            if self.parities { [(0, TILE), (1, self.planes / 2)] } else { [(0, self.planes), (1, 2)] };
        for (axis, factor) in planes {
            s.apply(split(axis, factor))?;
        }
        if self.parities {
            s.apply(order(&[1, 2, 0, 3, 4]))?;
        }
        // [sub-group, tile, half, line, node]
        let order_of_lanes: &[u32] = if self.nodes == TILE {
            s.apply(split(4, TILE / 2))?;
            &[0, 1, 3, 5, 2, 4]
        } else {
            for (axis, factor) in [(3, TILE), (5, TILE), (6, TILE / 2)] {
                s.apply(split(axis, factor))?;
            }
            &[0, 1, 4, 7, 2, 3, 5, 6]
        };
        s.apply(order(order_of_lanes))?;
        s.apply(JoinArrayAxes { var: array.into(), axis: 2 })?;
        s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
        self.fragments.push(array.into());
        Ok(())
    }

    /// Places what was dealt out, and makes the products instructions.
    ///
    /// # Errors
    /// A step that is refused: an array whose elements other work-items read, a product that is no
    /// instruction.
    pub fn place(self, s: &mut Schedule) -> Steps {
        s.tag_all(&self.lanes, AxisTag::Local(0))?;
        for array in &self.fragments {
            s.apply(SetAddressSpace::new(array, AddressSpace::SubGroup))?;
        }
        s.tag_all(&self.sub_groups, AxisTag::Local(1))?;
        s.apply(DeclareCallee::new(MMA_M16N8K8_F64))?;
        for call in &self.calls {
            s.apply(ReplaceWithIntrinsic::new([call], "mma_m16n8k8_f64"))?;
        }
        s.tag_all(&self.own, AxisTag::Unrolled)
    }
}

/// The work-items `4*g + t` of a sub-group.
fn join(s: &mut Schedule, g: &Loop, t: &Loop) -> Result<Loop, TransformError> {
    let joined = Some(s.fresh("lane"));
    s.make(JoinInames { joined, ..JoinInames::new(g, t) })
}
