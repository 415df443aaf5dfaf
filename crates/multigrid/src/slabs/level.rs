//! The part of a level that a device has.

use crate::{Element, MultigridError};
use kingpost_runtime::Device;
use kingpost_solve::{Communicator, Wire};
use std::ops::Range;

/// The finest mesh: cubes of `cells` cells a side, `height` of them after each other along the
/// slowest axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlabMesh {
    pub(crate) cells: usize,
    pub(crate) height: usize,
}

impl SlabMesh {
    /// Cells a side and layers of the level with a given number of cells a side.
    pub(crate) const fn at(self, cells: usize) -> (usize, usize) {
        (cells, self.height * cells)
    }

    /// Cells a side of the levels in slabs and of those that every part has as a whole, the finest
    /// first. In slabs are the finest one, and those with enough layers a slab and a level below.
    pub(crate) fn levels(self, parts: usize, least: usize) -> (Vec<usize>, Vec<usize>) {
        let is_in_slabs = |cells: &usize| {
            let layers = self.height * cells;
            let own = layers / parts;
            *cells == self.cells || (*cells >= 4 && layers.is_multiple_of(2 * parts) && own >= least)
        };
        let all: Vec<usize> =
            std::iter::successors(Some(self.cells), |n| (*n > 2).then_some(n / 2)).collect();
        let in_slabs = all.iter().copied().take_while(is_in_slabs).collect::<Vec<_>>();
        let whole = all[in_slabs.len()..].to_vec();
        (in_slabs, whole)
    }

    /// Steps of the smoother on the coarsest level, two cells a side. A cube has one patch there,
    /// which one step solves for. Of several after each other, patches overlap by half and a step
    /// leaves less than a tenth of the error: the slowest mode decays as exp(-√2 π z) along the
    /// axis in three dimensions.
    pub(crate) const fn steps_of_coarsest(self) -> usize {
        if self.height == 1 { 1 } else { 4 }
    }

    /// Nodes of a level.
    pub(crate) fn nodes(self, element: Element, cells: usize) -> usize {
        Slab::of(self.at(cells), 0, 1).nodes(element)
    }
}

/// Layers of cells of a level, of which a part owns some; one of each neighbour lies next to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slab {
    /// Cells a side of the mesh along all axes but the slowest.
    pub(crate) cells: usize,
    /// The first owned layer of the mesh.
    pub(crate) first: usize,
    /// Layers of the part below: one, or none at the boundary.
    pub(crate) below: usize,
    pub(crate) own: usize,
    /// Layers of the part above.
    pub(crate) above: usize,
}

/// Neighbouring planes of nodes: the first one, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planes {
    pub(crate) first: usize,
    pub(crate) count: usize,
}

impl Slab {
    /// Of a mesh with a given number of layers of cells.
    pub(crate) fn of((cells, layers): (usize, usize), rank: usize, size: usize) -> Self {
        let own = layers / size;
        let (below, above) = (usize::from(rank > 0), usize::from(rank + 1 < size));
        Self { cells, first: rank * own, below, own, above }
    }

    /// Layers of its vectors.
    pub(crate) const fn layers(self) -> usize {
        self.below + self.own + self.above
    }

    /// Nodes of a plane.
    pub(crate) fn plane(self, element: Element) -> usize {
        element.nodes_of_side(self.cells).pow(element.dimension.axes() as u32 - 1)
    }

    /// Nodes of its vectors.
    pub(crate) fn nodes(self, element: Element) -> usize {
        element.nodes_of_side(self.layers()) * self.plane(element)
    }

    /// The nodes that it owns: those of its layers up to the plane that the part above begins with.
    pub(crate) fn owned(self, element: Element) -> Range<usize> {
        let plane = self.plane(element);
        let first = element.degree * self.below * plane;
        first..first + (element.degree * self.own + 1 - self.above) * plane
    }

    /// The plane of the mesh that its vectors begin with.
    pub(crate) const fn first_plane(self, element: Element) -> usize {
        element.degree * (self.first - self.below)
    }

    /// What neighbours are sent of a vector and what they replace, each below and above: the layer
    /// at a cut without the plane of the cut, which both have.
    pub(crate) fn of_vectors(self, element: Element) -> [[Planes; 2]; 2] {
        let (k, cut) = (element.degree, element.degree * (self.below + self.own));
        let planes = |first| Planes { first, count: k };
        [[planes(k * self.below + 1), planes(cut - k)], [planes(0), planes(cut + 1)]]
    }

    /// What neighbours are sent of a right-hand side and what they add to, likewise: the layer at a
    /// cut with the plane of the cut, of which each has a part.
    pub(crate) fn of_right_hand_sides(self, element: Element) -> [[Planes; 2]; 2] {
        let (k, cut) = (element.degree, element.degree * (self.below + self.own));
        let planes = |first| Planes { first, count: k };
        [[planes(k * self.below), planes(cut + 1 - k)], [planes(1), planes(cut)]]
    }
}

/// What parts exchange of a level that each has as a whole: sums over their layers.
pub(crate) struct Gathering {
    /// The layers of the part.
    pub(crate) slab: Slab,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    /// None if there is one part.
    pub(crate) wire: Option<Wire>,
}

impl Gathering {
    pub(crate) fn new(
        device: &dyn Device,
        element: Element,
        mesh: (usize, usize),
        communicator: &dyn Communicator,
    ) -> Result<Self, MultigridError> {
        let (rank, size) = (communicator.rank(), communicator.size());
        let slab = Slab::of(mesh, rank, size);
        let piece = element.nodes_of_side(slab.own) * slab.plane(element);
        let others = || (0..size).filter(|peer| *peer != rank);
        let sends: Vec<_> = others().map(|peer| (peer, 0..piece)).collect();
        let receives = others().enumerate().map(|(at, peer)| (peer, at * piece..(at + 1) * piece)).collect();
        let wire = if size > 1 { Some(Wire::new(device, sends, receives)?) } else { None };
        Ok(Self { slab, rank, size, wire })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Planes, Slab};
    use crate::{Dimension, Element};

    /// What a part sends is what its neighbour receives, by the planes of the mesh.
    #[test]
    fn neighbours_mean_the_same_planes() {
        for degree in 1..=4 {
            let element = Element::new(Dimension::Three, degree).unwrap();
            for size in [2, 4, 8] {
                let slabs: Vec<Slab> = (0..size).map(|rank| Slab::of((8, 16), rank, size)).collect();
                for pair in slabs.windows(2) {
                    let of_mesh = |slab: Slab, planes: Planes| slab.first_plane(element) + planes.first;
                    let [lower, upper] = [pair[0], pair[1]];
                    for all in [Slab::of_vectors, Slab::of_right_hand_sides] {
                        let ([sent, received], [sent_down, received_up]) =
                            (all(upper, element), all(lower, element));
                        assert_eq!(of_mesh(upper, sent[0]), of_mesh(lower, received_up[1]));
                        assert_eq!(of_mesh(lower, sent_down[1]), of_mesh(upper, received[0]));
                    }
                    let cut = degree * upper.first;
                    assert_eq!(of_mesh(upper, upper.of_vectors(element)[0][0]), cut + 1);
                    assert_eq!(of_mesh(upper, upper.of_right_hand_sides(element)[0][0]), cut);
                }
                let owned: usize = slabs.iter().map(|slab| slab.owned(element).len()).sum();
                assert_eq!(owned, element.nodes_of_side(8).pow(2) * element.nodes_of_side(16));
            }
        }
    }
}
