//! Where `kingpost solve poisson --multigrid` solves, and the file of its solution.

use super::failure::Failure;
use super::out;
use super::solve_args::SolveArgs;
use super::values::read_mesh;
use kingpost::files;
use kingpost::forms::element::CellShape;
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::Numbering;
use kingpost::forms::vtu::{Vtu, VtuEncoding};
use kingpost::multigrid::{DeformedMesh, Dimension, Element, MappedBox};

/// A unit square or cube, or what a file maps it to.
pub(super) struct Domain {
    pub(super) dimension: Dimension,
    /// Cells a side.
    pub(super) cells: usize,
    /// Vertices and coefficient, where they are not those of unit cells.
    pub(super) mesh: Option<DeformedMesh>,
    pub(super) described: String,
}

impl Domain {
    /// What the arguments ask for.
    pub(super) fn of(args: &SolveArgs) -> Result<Self, Failure> {
        let jump = |mesh: DeformedMesh| mesh.with_jump(args.jump.unwrap_or(1.0));
        let default = |dimension| match dimension {
            Dimension::Two => 64,
            Dimension::Three => 16,
        };
        if let Some(path) = &args.mesh {
            let refused =
                |e: &dyn std::fmt::Display| Failure::Usage(format!("mesh `{}`: {e}", path.display()));
            let mesh = read_mesh(path)?;
            let found = MappedBox::of(&mesh).map_err(|e| refused(&e))?;
            let dimension = found.dimension();
            let counts: Vec<String> = found.counts().iter().map(ToString::to_string).collect();
            let least = found.counts().iter().copied().max().unwrap_or(1);
            let cells = args.cells.unwrap_or_else(|| least.max(default(dimension)));
            let refined = found.refined(cells).and_then(jump).map_err(|e| refused(&e))?;
            let shape = mesh.shape();
            return Ok(Self {
                dimension,
                cells,
                mesh: Some(refined),
                described: format!("`{}`, {} cells ({shape})", path.display(), counts.join(" x ")),
            });
        }
        let dimension = if args.dim == 2 { Dimension::Two } else { Dimension::Three };
        let cells = args.cells.unwrap_or(default(dimension));
        let mesh = match args.has_mesh() {
            true => {
                Some(DeformedMesh::of_sines(dimension, cells, args.deform.unwrap_or(0.0)).and_then(jump)?)
            }
            false => None,
        };
        let described = match dimension {
            Dimension::Two => "unit square",
            Dimension::Three => "unit cube",
        };
        Ok(Self { dimension, cells, mesh, described: described.to_owned() })
    }
}

/// Writes the solution, if a file is asked for. Each cell is drawn as k^d cells with corners at its
/// nodes.
pub(super) fn write_vtu(
    args: &SolveArgs,
    element: Element,
    domain: &Domain,
    solution: &[f64],
) -> Result<(), Failure> {
    let Some(path) = &args.vtu else { return Ok(()) };
    let refused = |e: &dyn std::fmt::Display| Failure::Usage(format!("--vtu: {e}"));
    if u32::try_from(solution.len()).is_err() {
        return Err(refused(&format!("{} nodes: needed at most {}", solution.len(), u32::MAX)));
    }
    let (axes, side) = (element.dimension.axes(), element.nodes_of_side(domain.cells));
    let unit = || DeformedMesh::of_sines(element.dimension, domain.cells, 0.0);
    let mesh = domain.mesh.clone().map_or_else(unit, Ok)?;
    let along: Vec<Vec<f64>> = (0..axes).map(|a| mesh.at_nodes(element, |x| x[a])).collect();
    let coordinates = (0..solution.len()).flat_map(|node| along.iter().map(move |x| x[node])).collect();
    let strides: Vec<usize> = (0..axes as u32).map(|a| side.pow(a)).collect();
    let inside = |node: &usize| strides.iter().all(|stride| node / stride % side + 1 < side);
    let corner = |node: usize, corner: usize| -> u32 {
        let step = strides.iter().enumerate().map(|(a, stride)| (corner >> a & 1) * stride).sum::<usize>();
        (node + step) as u32
    };
    let first = (0..solution.len()).filter(inside);
    let cells: Vec<u32> = first.flat_map(|node| (0..1 << axes).map(move |at| corner(node, at))).collect();
    let shape = match element.dimension {
        Dimension::Two => CellShape::Quadrilateral,
        Dimension::Three => CellShape::Hexahedron,
    };
    let drawn = Mesh::new(shape, coordinates, cells, None).map_err(|e| refused(&e))?;
    let numbering = Numbering::new(&drawn, 1).map_err(|e| refused(&e))?;
    let mut values = vec![0.0; solution.len()];
    for (dof, node) in numbering.dofs().iter().zip(drawn.cells()) {
        values[*dof as usize] = solution[*node as usize];
    }
    let mut vtu = Vtu::new(&drawn, 1).map_err(|e| refused(&e))?;
    vtu.field("u", &numbering, &values).map_err(|e| refused(&e))?;
    files::write(path, vtu.to_bytes(VtuEncoding::Base64)).map_err(|e| Failure::of_write(path, &e))?;
    out(&format!("wrote {}\n", path.display()))
}
