//! Cells that are turned, so that a degree of freedom stands at the same place in each of them.

use crate::form::FormError;
use crate::tabulated::Space;
use kingpost_fem::element::CellShape;

/// How far images of nodes may be from nodes.
const SAME: f64 = 1e-10;

/// How the cells of a degree of freedom are turned: by permutations of their vertices, which
/// permute the nodes of Lagrange elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turns {
    /// By degree of freedom of a cell that is to stand at the place of an owner, which one stands
    /// at each place of the turned cell.
    pub columns: Vec<Vec<u32>>,
    /// The dimension of the entity that each degree of freedom belongs to.
    pub dims: Vec<usize>,
    /// The place of owners, by dimension of their entity; none where there is no degree of freedom.
    pub own: [Option<usize>; 4],
}

fn refused(found: &str, needed: &str) -> FormError {
    FormError::Discretisation(format!(
        "assembly by the owners of rows on turned cells: found {found}, needed {needed}; use owned rows"
    ))
}

/// All orders of the first `n` numbers.
fn permutations(n: usize) -> Vec<Vec<usize>> {
    match n.checked_sub(1) {
        None => vec![Vec::new()],
        Some(last) => permutations(last)
            .into_iter()
            .flat_map(|p| (0..n).map(move |at| [&p[..at], &[last], &p[at..]].concat()))
            .collect(),
    }
}

impl Turns {
    /// Of a space on a cell.
    ///
    /// # Errors
    /// Other cells than triangles and tetrahedra, other degrees of freedom than values at nodes, of
    /// which those at vertices come first; nodes on entities of one dimension that no permutation
    /// maps to each other, as those of edges from degree 4 on.
    pub fn of(cell: CellShape, space: &Space) -> Result<Self, FormError> {
        if !matches!(cell, CellShape::Triangle | CellShape::Tetrahedron) {
            return Err(refused(&format!("cells of shape {cell}"), "triangles or tetrahedra"));
        }
        let Some(points) = space.nodes.as_ref().filter(|_| space.transforms.is_empty()) else {
            let found = format!("degrees of freedom of `{}` that are no values at nodes", space.name);
            return Err(refused(&found, "Lagrange elements"));
        };
        let barycentric = |p: &Vec<f64>| [&[1.0 - p.iter().sum::<f64>()], &p[..]].concat();
        let nodes: Vec<Vec<f64>> = points.iter().map(barycentric).collect();
        let n_vertices = cell.n_vertices();
        let is_vertex = |(at, node): (usize, &Vec<f64>)| (node[at] - 1.0).abs() <= SAME;
        if nodes.len() < n_vertices || !nodes.iter().enumerate().take(n_vertices).all(is_vertex) {
            let found = format!("an element of `{}` whose first nodes are not the vertices", space.name);
            return Err(refused(&found, "Lagrange elements of degree 1 to 3"));
        }
        let dims: Vec<usize> = nodes
            .iter()
            .map(|node| node.iter().filter(|x| x.abs() > SAME).count().saturating_sub(1))
            .collect();
        let own = [0, 1, 2, 3].map(|dim| dims.iter().position(|of| *of == dim));
        // vertex k of the turned cell is vertex turn[k] of the cell
        let image = |turn: &[usize], node: &Vec<f64>| {
            let near = |other: &Vec<f64>| node.iter().zip(turn).all(|(x, at)| (other[*at] - x).abs() <= SAME);
            nodes.iter().position(near).and_then(|at| u32::try_from(at).ok())
        };
        let turns: Vec<Vec<u32>> = permutations(n_vertices)
            .iter()
            .filter_map(|turn| nodes.iter().map(|node| image(turn, node)).collect())
            .collect();
        let of_dof = |(dof, dim): (usize, &usize)| {
            let place = own[*dim]
                .and_then(|place| turns.iter().find(|columns| columns[place] as usize == dof).cloned());
            place.ok_or_else(|| {
                let found = format!(
                    "degrees of freedom {} and {dof} of `{}`, which no order of vertices maps to each other",
                    own[*dim].map_or_else(String::new, |place| place.to_string()),
                    space.name
                );
                refused(&found, "Lagrange elements of degree 1 to 3")
            })
        };
        let columns = dims.iter().enumerate().map(of_dof).collect::<Result<_, _>>()?;
        Ok(Self { columns, dims, own })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kingpost_fem::element::LagrangeElement;

    fn space(cell: CellShape, degree: usize) -> Space {
        let points = LagrangeElement::new(cell, degree).unwrap().points().to_vec();
        let nodes: Vec<Vec<f64>> = points.chunks_exact(cell.dim()).map(<[f64]>::to_vec).collect();
        Space {
            name: "v".into(),
            columns: nodes.len(),
            block: 1,
            description: String::new(),
            nodes: Some(nodes),
            transforms: Vec::new(),
            map: None,
            count: None,
        }
    }

    /// Each turn is a permutation that keeps dimensions, and has the owner's degree of freedom at
    /// its place.
    #[test]
    fn turns_are_permutations_with_the_owner_at_its_place() {
        for (cell, degree) in
            [CellShape::Triangle, CellShape::Tetrahedron].into_iter().flat_map(|c| [(c, 1), (c, 2), (c, 3)])
        {
            let Turns { columns, dims, own } = Turns::of(cell, &space(cell, degree)).unwrap();
            for (dof, of) in columns.iter().enumerate() {
                let mut sorted = of.clone();
                sorted.sort_unstable();
                assert!(sorted.iter().enumerate().all(|(k, at)| k == *at as usize), "{of:?}");
                assert_eq!(of[own[dims[dof]].unwrap()] as usize, dof);
                assert!(of.iter().enumerate().all(|(k, at)| dims[k] == dims[*at as usize]));
            }
        }
        let own = Turns::of(CellShape::Tetrahedron, &space(CellShape::Tetrahedron, 3)).unwrap().own;
        assert_eq!(own, [Some(0), Some(4), Some(16), None]);
    }

    #[test]
    fn other_elements_are_refused() {
        let of = |cell, space: &Space| Turns::of(cell, space).unwrap_err().to_string();
        let tetrahedron = CellShape::Tetrahedron;
        let quartic = of(tetrahedron, &space(tetrahedron, 4));
        assert!(
            quartic.contains("degrees of freedom 4 and 5 of `v`, which no order of vertices"),
            "{quartic}"
        );
        assert!(of(CellShape::Hexahedron, &space(CellShape::Hexahedron, 1)).contains("cells of shape hexa"));
        let moments = Space { nodes: None, ..space(tetrahedron, 1) };
        assert!(of(tetrahedron, &moments).contains("no values at nodes"));
        let mut swapped = space(tetrahedron, 2);
        swapped.nodes.as_mut().unwrap().swap(0, 5);
        assert!(of(tetrahedron, &swapped).contains("whose first nodes are not the vertices"));
    }
}
