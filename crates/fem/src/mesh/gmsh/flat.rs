//! Where in space the nodes of lines, triangles and quadrangles lie.

use super::GmshError;
use super::file::Node;
use crate::element::CellShape;
use crate::mesh::placement::{Placement, dot};

/// What rounding leaves of a straight line or a plane, as a part of the extent of the mesh and as a
/// part of its largest coordinate: some units in the last place of coordinates, of a rotation and of
/// the 16 digits that gmsh writes.
const ROUNDING: (f64, f64) = (1e-12, 1e-14);

/// Where a mesh lies: on which line or plane, of which its coordinates are those along the axes that
/// the line or plane runs along, or else along directions close to them. None for a mesh that lies
/// along the first axis, in the plane of the first two, or fills space.
///
/// # Errors
/// [`GmshError::NotFinite`], and [`GmshError::NotFlat`] if one of the nodes lies off the line or
/// plane of others by more than rounding.
pub(super) fn placement(shape: CellShape, nodes: &[&Node]) -> Result<Option<Placement>, GmshError> {
    if let Some((node, _)) = nodes.iter().find(|(_, point)| !point.iter().all(|x| x.is_finite())) {
        return Err(GmshError::NotFinite { node: *node });
    }
    let Some((_, first)) = nodes.first() else { return Ok(None) };
    let dim = shape.dim();
    if dim == 3 {
        return Ok(None);
    }
    let largest = nodes.iter().flat_map(|(_, point)| point).fold(0.0_f64, |size, x| size.max(x.abs()));
    if largest == 0.0 {
        return Ok(None);
    }
    let cloud = Cloud { nodes, largest };
    let spans = cloud.spans();
    let extent = spans.iter().copied().fold(0.0, f64::max);
    let tolerance = ROUNDING.0 * extent + ROUNDING.1;
    let mut fixed: Vec<usize> = (0..3).rev().filter(|axis| spans[*axis] <= 2.0 * tolerance).collect();
    fixed.truncate(3 - dim);
    if fixed.len() < 3 - dim {
        return cloud.tilted(shape, tolerance).map(Some);
    }
    if fixed.iter().all(|axis| *axis >= dim && first[*axis].abs() <= 2.0 * tolerance * largest) {
        return Ok(None);
    }
    let (mut origin, mut axes) = ([0.0; 3], Vec::new());
    for axis in 0..3 {
        if fixed.contains(&axis) {
            origin[axis] = first[axis];
        } else {
            axes.push(unit(axis));
        }
    }
    Ok(Some(Placement::new(origin, axes)))
}

/// Nodes, in units of their largest coordinate, so that no product overflows.
struct Cloud<'a> {
    nodes: &'a [&'a Node],
    largest: f64,
}

impl Cloud<'_> {
    fn point(&self, node: usize) -> [f64; 3] {
        self.nodes[node].1.map(|x| x / self.largest)
    }

    fn from(&self, origin: &[f64; 3], node: usize) -> [f64; 3] {
        minus(&self.point(node), origin)
    }

    /// By how much the nodes differ along each axis.
    fn spans(&self) -> [f64; 3] {
        let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        for node in 0..self.nodes.len() {
            for (axis, x) in self.point(node).into_iter().enumerate() {
                low[axis] = low[axis].min(x);
                high[axis] = high[axis].max(x);
            }
        }
        [0, 1, 2].map(|axis| high[axis] - low[axis])
    }

    /// The node for which a figure is the largest, and the figure.
    fn farthest(&self, figure: impl Fn(usize) -> f64) -> (usize, f64) {
        let all = (0..self.nodes.len()).map(|node| (node, figure(node)));
        all.fold((0, 0.0), |most, other| if other.1 > most.1 { other } else { most })
    }

    /// On a line or plane along no axis. It goes through nodes that are far apart, so that their
    /// rounding hardly turns it.
    fn tilted(&self, shape: CellShape, tolerance: f64) -> Result<Placement, GmshError> {
        let origin = self.point(0);
        let (second, length) = self.farthest(|node| norm(&self.from(&origin, node)));
        let along = scaled(&self.from(&origin, second), 1.0 / length);
        let beside = |node: usize| cross(&along, &self.from(&origin, node));
        let (third, height) = self.farthest(|node| norm(&beside(node)));
        let number = |node: usize| self.nodes[node].0;
        let refuse = |node: usize, distance: f64, of: Vec<usize>| {
            let (node, distance) = (number(node), distance * self.largest);
            let of = of.into_iter().map(number).collect();
            Err(GmshError::NotFlat { node, distance, of, shape })
        };
        if shape.dim() == 1 {
            if height > tolerance {
                return refuse(third, height, vec![0, second]);
            }
            let axis = upward(along);
            let foot = minus(&origin, &scaled(&axis, dot(&axis, &origin)));
            return Ok(Placement::new(scaled(&foot, self.largest), vec![axis]));
        }
        // no cell has an area if all nodes lie on a line: any plane through it says so
        let normal = if height > tolerance { beside(third) } else { across(&along) };
        let normal = scaled(&normal, 1.0 / norm(&normal));
        let (farthest, distance) = self.farthest(|node| dot(&normal, &self.from(&origin, node)).abs());
        if distance > tolerance {
            return refuse(farthest, distance, vec![0, second, third]);
        }
        let foot = scaled(&normal, dot(&normal, &origin) * self.largest);
        Ok(Placement::new(foot, plane_axes(&normal)))
    }
}

/// Directions of a plane close to two of the axes, without that which is closest to its normal.
fn plane_axes(normal: &[f64; 3]) -> Vec<[f64; 3]> {
    let most = normal.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    // of axes that are equally close, up to rounding, the last
    let dropped = (0..3).rev().find(|axis| normal[*axis].abs() >= (1.0 - 1e-9) * most);
    let kept: Vec<usize> = (0..3).filter(|axis| Some(*axis) != dropped).collect();
    let first = minus(&unit(kept[0]), &scaled(normal, normal[kept[0]]));
    let first = scaled(&first, 1.0 / norm(&first));
    let second = cross(normal, &first);
    let sign = if second[kept[1]] < 0.0 { -1.0 } else { 1.0 };
    vec![first, scaled(&second, sign / norm(&second))]
}

/// The direction or its opposite: along the axis that it is closest to.
fn upward(direction: [f64; 3]) -> [f64; 3] {
    let most = direction.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let along = direction.iter().find(|x| x.abs() >= (1.0 - 1e-9) * most);
    if along.is_some_and(|x| *x < 0.0) { scaled(&direction, -1.0) } else { direction }
}

/// A direction at right angles.
fn across(direction: &[f64; 3]) -> [f64; 3] {
    let least = direction.iter().fold(f64::INFINITY, |least, x| least.min(x.abs()));
    let axis = (0..3).find(|axis| direction[*axis].abs() <= least);
    cross(direction, &unit(axis.unwrap_or(2)))
}

fn unit(axis: usize) -> [f64; 3] {
    let mut unit = [0.0; 3];
    unit[axis] = 1.0;
    unit
}

fn minus(a: &[f64; 3], b: &[f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn scaled(a: &[f64; 3], factor: f64) -> [f64; 3] {
    a.map(|x| x * factor)
}

fn cross(a: &[f64; 3], b: &[f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn norm(a: &[f64; 3]) -> f64 {
    dot(a, a).sqrt()
}
