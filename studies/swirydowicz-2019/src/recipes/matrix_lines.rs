//! Contractions by FP64 matrix instructions: a sub-group has eight lines of each of two planes at a
//! time, and what an instruction gives lies as another takes its first factor.

use super::nest::Steps;
use purlin::prelude::{
    AddressSpace, AxisTag, DeclareCallee, JoinArrayAxes, JoinInames, PadArray, ReplaceWithIntrinsic,
    Schedule, SetAddressSpace, SplitArrayAxis, TransposeArrayAxes,
};
use purlin::transforms::TransformError;
use purlin::transforms::intrinsics::MMA_M16N8K8_F64;
use purlin::transforms::schedule::Loop;

/// Columns of a tile, and lines that are rows of half an instruction.
pub const TILE: i64 = 8;

/// Sub-groups of an element, each with four planes of eight, or two of sixteen nodes.
pub fn sub_groups(nodes: usize) -> i64 {
    if nodes as i64 == TILE { 2 } else { nodes as i64 / 2 }
}

/// One sub-group for an element of eight planes.
pub fn few_sub_groups(nodes: usize) -> i64 {
    if nodes as i64 == TILE { 1 } else { sub_groups(nodes) }
}

/// Pads a local array so that sixteen work-items which read along any two axes meet in no bank: the
/// strides of lines and of planes are then four doubles more than a multiple of sixteen, or less.
pub fn pad(s: &mut Schedule, array: &str) -> Steps {
    s.apply(PadArray::new(array, 3, 4))?;
    s.apply(PadArray::new(array, 2, 1)).map(|_| ())
}

/// Loops and arrays on their way to the axes of a launch.
#[derive(Default)]
pub struct Lines {
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
    /// Nodes of a line, a multiple of [`TILE`].
    nodes: i64,
}

impl Lines {
    /// Of elements whose `nodes` planes of lines are dealt out to `sub_groups`.
    pub fn new(nodes: usize, sub_groups: i64) -> Self {
        let nodes = nodes as i64;
        Self { planes: nodes / sub_groups, nodes, ..Self::default() }
    }

    /// A nest over planes, lines of a plane and the nodes of a line, dealt out as an instruction has its
    /// result: line `g` of plane `half` and node `4*part + t` belong to work-item `4*g + t`.
    pub fn deal(&mut self, s: &mut Schedule, [plane, line, node]: [&str; 3]) -> Steps {
        let [sub_group, tile, half] = self.split_planes(s, plane)?;
        let (lines, g) = self.split_tiles(s, line, "lines")?;
        let (nodes, node) = self.split_tiles(s, node, "nodes")?;
        let [part, t] = s.split_as(&node, TILE / 2, ["part", "place"])?;
        let own: Vec<Loop> =
            [tile].into_iter().chain(lines).chain([half]).chain(nodes).chain([part]).collect();
        s.reorder([&sub_group, &g, &t].into_iter().chain(&own))?;
        self.lanes.push(join(s, &g, &t)?);
        self.sub_groups.push(sub_group);
        self.own.extend(own);
        Ok(())
    }

    /// A nest with the sum of a contraction innermost, an instruction for eight lines of two planes.
    pub fn contract(&mut self, s: &mut Schedule, [plane, line, node, term]: [&str; 4]) -> Steps {
        let [sub_group, tile, half] = self.split_planes(s, plane)?;
        let (lines, g) = self.split_tiles(s, line, "lines")?;
        let (nodes, node) = self.split_tiles(s, node, "nodes")?;
        let (terms, term) = self.split_tiles(s, term, "terms")?;
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

    /// The contractions of BP3.5, each with lines along the axis that is contracted.
    pub fn contract_all(&mut self, s: &mut Schedule) -> Steps {
        for nest in [
            ["k_sum", "j_sum", "i_sum", "lr"],
            ["c_sum", "b_sum", "a_sum", "mr"],
            ["k_s_sum", "i_s_sum", "j_s_sum", "ls"],
            ["c_s_sum", "a_s_sum", "b_s_sum", "ms"],
            ["j_t_sum", "i_t_sum", "k_t_sum", "lt"],
            ["b_t_sum", "a_t_sum", "c_t_sum", "mt"],
        ] {
            self.contract(s, nest)?;
        }
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
        let [sub_group, planes] = s.split_as(plane, self.planes, ["sub_group", "planes"])?;
        let [tile, half] = s.split_as(planes, 2, ["tile", "half"])?;
        Ok([sub_group, tile, half])
    }

    /// Lays an array of the nodes of an element out as [`Self::deal`] deals them: `axes` are those of
    /// planes, of lines and of nodes of a line.
    pub fn hold(&mut self, s: &mut Schedule, array: &str, axes: [u32; 3]) -> Steps {
        let order = |order: &[u32]| TransposeArrayAxes { var: array.into(), order: order.to_vec() };
        if axes != [0, 1, 2] {
            s.apply(order(&axes))?;
        }
        let split = |axis, factor| SplitArrayAxis { var: array.into(), axis, factor };
        for (axis, factor) in [(0, self.planes), (1, 2)] {
            s.apply(split(axis, factor))?;
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
