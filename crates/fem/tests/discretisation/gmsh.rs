//! Gmsh files: those that gmsh wrote, and every way in which a file can be wrong.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::{CellTags, Facet, GmshError, Mesh, MeshError, Place};
use kingpost_sample::config;
use proptest::prelude::*;

const PLATE: &[u8] = include_bytes!("../data/plate.msh");
const PLATE_BINARY: &[u8] = include_bytes!("../data/plate_binary.msh");
const BALL: &[u8] = include_bytes!("../data/ball.msh");
const BALL_BINARY: &[u8] = include_bytes!("../data/ball_binary.msh");
const BRACKET: &[u8] = include_bytes!("../../../../meshes/bracket.msh");

#[test]
fn reads_triangles() {
    let mesh = Mesh::from_gmsh(PLATE).unwrap();
    assert_eq!(mesh.shape(), CellShape::Triangle);
    assert!(mesh.tags().unwrap().iter().all(|tags| tags == [7]), "the physical group of the surface");
    let exact = 2.0 - 0.0625 * std::f64::consts::PI;
    // 4 %: the hole is a polygon with few sides, and lies within the disk.
    assert!(mesh.volume() > exact && mesh.volume() < 1.04 * exact, "{}", mesh.volume());
}

#[test]
fn reads_tetrahedra_with_parametric_nodes() {
    let mesh = Mesh::from_gmsh(BALL).unwrap();
    assert_eq!(mesh.shape(), CellShape::Tetrahedron);
    assert_eq!(mesh.tags(), None, "the volume is in no group");
    let exact = 4.0 / 3.0 * std::f64::consts::PI;
    // 30 %: inscribed in the ball with edges about as long as its radius.
    assert!(mesh.volume() < exact && mesh.volume() > 0.7 * exact, "{}", mesh.volume());
}

#[test]
fn binary_is_the_same_mesh_as_text() {
    for (text, binary) in [(PLATE, PLATE_BINARY), (BALL, BALL_BINARY)] {
        let (text, binary) = (Mesh::from_gmsh(text).unwrap(), Mesh::from_gmsh(binary).unwrap());
        assert_eq!(text.cells(), binary.cells());
        assert_eq!(text.tags(), binary.tags());
        for (a, b) in text.coordinates().iter().zip(binary.coordinates()) {
            // 1e-15: gmsh writes 16 digits, one short of a double.
            assert!((a - b).abs() <= 1e-15 * b.abs().max(0.1));
        }
    }
}

#[test]
fn reads_the_bracket() {
    let mesh = Mesh::from_gmsh(BRACKET).unwrap();
    assert_eq!(mesh.shape(), CellShape::Tetrahedron);
    assert_eq!((mesh.n_vertices(), mesh.n_cells()), (5798, 22393));
    assert!((0..mesh.n_cells()).all(|cell| mesh.determinant(cell) > 0.0));
    let pi = std::f64::consts::PI;
    let (base, wall, fillet) = (8.0 * 6.0 * 0.8, 0.8 * 6.0 * 5.2, (1.0 - pi / 4.0) * 6.0);
    let holes = 0.8 * pi * (4.0 * 0.45 * 0.45 + 1.1 * 1.1 + 2.0 * 0.3 * 0.3);
    let exact = base + wall + fillet - holes;
    // 0.5 %: 16 sides for a full circle leave 2.6 % of the area of a hole.
    assert!((mesh.volume() / exact - 1.0).abs() < 5e-3, "{} {exact}", mesh.volume());
    let ordered = mesh.reorder_for_locality();
    // 1e-12: the same 22,393 terms in another order.
    assert!((ordered.volume() / mesh.volume() - 1.0).abs() < 1e-12);
    Mesh::new(ordered.shape(), ordered.coordinates().to_vec(), ordered.cells().to_vec(), None).unwrap();
}

#[test]
fn unreadable_file_is_named() {
    let error = Mesh::read_gmsh(Path::new("no/such/file.msh")).unwrap_err();
    assert!(error.to_string().starts_with("cannot read `no/such/file.msh`: "), "{error}");
}

fn message(file: &[u8]) -> String {
    Mesh::from_gmsh(file).unwrap_err().to_string()
}

/// The quarter ring of `scripts/test_meshes.py`.
fn sector(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/sector_{name}.msh", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

const SECTORS: [(&str, CellShape); 4] = [
    ("triangle", CellShape::Triangle),
    ("quadrangle", CellShape::Quadrilateral),
    ("tetrahedron", CellShape::Tetrahedron),
    ("hexahedron", CellShape::Hexahedron),
];

#[test]
fn reads_every_cell_of_orders_1_to_4() {
    let exact = 0.75 * std::f64::consts::PI;
    for (name, shape) in SECTORS {
        let mut last = f64::INFINITY;
        for order in 1..=4 {
            let mesh = Mesh::from_gmsh(&sector(&format!("{name}_{order}_41"))).unwrap();
            assert_eq!((mesh.shape(), mesh.geometry_degree()), (shape, order));
            assert_eq!(mesh.is_affine(), order == 1 && shape.is_simplex());
            assert!(mesh.tags().unwrap().iter().all(|tags| tags == [7]));
            let error = (mesh.volume() / exact - 1.0).abs();
            assert!(error < 0.5 * last, "{name} of order {order}: {error:e} after {last:e}");
            last = error;
            let kept = mesh.reorder_for_locality();
            // 1e-14: the same determinants in another order
            assert!((kept.volume() / mesh.volume() - 1.0).abs() < 1e-14);
            assert_eq!(kept.facet_tags().len(), mesh.facet_tags().len());
        }
        // two arcs of 45 degrees through 5 points each; gmsh leaves 1e-4 of it on curved tetrahedra
        let bound = if shape == CellShape::Tetrahedron { 2e-4 } else { 1e-5 };
        assert!(last < bound, "{name}: {last:e}");
    }
}

#[test]
fn formats_hold_the_same_mesh() {
    for (name, _) in SECTORS {
        let mesh = Mesh::from_gmsh(&sector(&format!("{name}_2_41"))).unwrap();
        for format in ["41_binary", "22", "22_binary"] {
            let other = Mesh::from_gmsh(&sector(&format!("{name}_2_{format}"))).unwrap();
            assert_eq!((other.cells(), other.tags()), (mesh.cells(), mesh.tags()), "{name} {format}");
            assert_eq!(other.facet_tags(), mesh.facet_tags(), "{name} {format}");
            assert_eq!(other.nodes().len(), mesh.nodes().len());
            for (a, b) in mesh.nodes().iter().zip(other.nodes()) {
                // 1e-15: gmsh writes 16 digits, one short of a double.
                assert!((a - b).abs() <= 4e-15, "{name} {format}: {a} {b}");
            }
        }
    }
}

/// Tagged facets lie where their tags say, in the middle as at the corners, before and after the
/// cells are reordered.
#[test]
fn tags_of_facets_are_those_of_their_geometry() {
    for (name, shape) in SECTORS {
        let mesh = Mesh::from_gmsh(&sector(&format!("{name}_4_41"))).unwrap();
        for mesh in [mesh.reorder_for_locality(), mesh] {
            let facets = mesh.facets();
            let tags = |facet: &Facet| mesh.tags_of_facet(facet.side).collect::<Vec<_>>();
            let count = |tag| facets.iter().filter(|facet| tags(facet) == [tag]).count();
            let expected = if shape == CellShape::Tetrahedron { 4 } else { 2 };
            assert_eq!((count(11), count(12)), (expected, expected), "{name}");
            for facet in facets.iter().filter(|facet| !tags(facet).is_empty()) {
                assert_eq!(facet.other, None);
                let vertices = shape.facets()[facet.side.facet as usize];
                let dim = shape.dim();
                let centre: Vec<f64> = (0..dim)
                    .map(|axis| {
                        let sum: f64 = vertices.iter().map(|v| shape.vertices()[v * dim + axis]).sum();
                        sum / vertices.len() as f64
                    })
                    .collect();
                let at = mesh.point(facet.side.cell as usize, &centre);
                let radius = at[0].hypot(at[1]);
                let wanted = if tags(facet) == [11] { 1.0 } else { 2.0 };
                // 1e-3: gmsh leaves 4e-4 between the nodes of a curved triangle; a flat one is 0.1
                // off
                assert!((radius - wanted).abs() < 1e-3, "{name}: {radius} of {facet:?}");
            }
        }
    }
}

#[test]
fn reads_files_of_version_2_2() {
    let (old, new) = (include_bytes!("../data/plate_old.msh"), Mesh::from_gmsh(PLATE).unwrap());
    let old = Mesh::from_gmsh(old).unwrap();
    assert_eq!((old.n_cells(), old.n_vertices(), old.tags()), (new.n_cells(), new.n_vertices(), new.tags()));
    // 1e-13: the sum of some hundred areas in another order
    assert!((old.volume() / new.volume() - 1.0).abs() < 1e-13);
}

#[test]
fn curved_plate_has_a_rounder_hole() {
    let exact = 2.0 - 0.0625 * std::f64::consts::PI;
    let straight = Mesh::from_gmsh(PLATE).unwrap().volume() - exact;
    let curved = Mesh::from_gmsh(include_bytes!("../data/plate_curved.msh")).unwrap().volume() - exact;
    assert!(curved.abs() < 0.1 * straight, "{curved} {straight}");
}

#[test]
fn refuses_cells_of_several_kinds_and_those_without_all_their_nodes() {
    let mixed = message(&sector("mixed"));
    assert_eq!(
        mixed,
        "element 13 is a quadrangle of order 1 and element 9 is a triangle of order 1; needed cells of one kind, so mesh with one, save them in files of their own, or take `kingpost.meshes` of the Python package"
    );
    assert_eq!(
        edited("2 1 2 2\n11 1 2 4\n12 1 4 8\n", "2 1 16 2\n11 1 2 4 8 1 2 4 8\n12 1 2 4 8 1 2 4 8\n"),
        "element 11 is a quadrangle without inner nodes; supported are lines, triangles, tetrahedra, quadrangles and hexahedra of order 1 to 4, prisms and pyramids of order 1 and 2, each with all its nodes"
    );
}

#[test]
fn refuses_other_versions() {
    assert_eq!(
        message(b"$MeshFormat\n4.0 0 8\n$EndMeshFormat\n"),
        "line 2: version `4.0` is not supported; save the mesh as MSH 4.1 or 2.2 (`gmsh -format msh41`)"
    );
}

#[test]
fn malformed_files_of_version_2_2_are_refused_with_their_line() {
    let file = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n3\n1 0 0 0\n2 1 0 0\n3 0 1 0\n$EndNodes\n\
                $Elements\n2\n1 1 2 5 4 1 2\n2 2 2 9 4 1 2 3\n$EndElements\n";
    let mesh = Mesh::from_gmsh(file.as_bytes()).unwrap();
    assert_eq!((mesh.cells(), mesh.tags()), (&[0, 1, 2][..], Some(&CellTags::new([&[9][..]]))));
    let first = mesh.facets()[2].side;
    assert_eq!(mesh.tags_of_facet(first).collect::<Vec<_>>(), [5], "the edge between the first two vertices");
    let edited = |from: &str, to: &str| message(file.replacen(from, to, 1).as_bytes());
    assert_eq!(
        edited("2 2 2 9 4 1 2 3", "2 2 2 9 4 1 2"),
        "line 14: expected an integer of 32 bits, found `$EndElements`"
    );
    assert_eq!(edited("2 2 2 9", "2 2 -2 9"), "line 13: expected a non-negative integer, found `-2`");
    assert_eq!(
        edited("2 2 2 9", "2 77 2 9"),
        "line 13: element type 77 is not known; save triangles, tetrahedra, quadrangles or hexahedra"
    );
    assert_eq!(edited("4 1 2 3", "4 1 2 7"), "element 2 has node 7, which the file does not define");
}

/// A file with the unit square in two triangles, numbered 11 and 12, on nodes 1, 2, 4, 8 (node 100
/// is in no cell).
fn square() -> String {
    "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Comment\nnothing to see\n$EndComment\n$Nodes\n2 5 1 100\n2 1 0 4\n1\n2\n4\n8\n\
     0 0 0\n1 0 0\n1 1 0\n0 1 0\n0 1 0 1\n100\n5 5 5\n$EndNodes\n$Elements\n2 3 10 12\n1 1 1 1\n10 1 2\n2 1 2 2\n\
     11 1 2 4\n12 1 4 8\n$EndElements\n"
        .to_owned()
}

fn edited(from: &str, to: &str) -> String {
    assert!(square().contains(from));
    message(square().replacen(from, to, 1).as_bytes())
}

#[test]
fn reads_sparse_tags_and_skips_unknown_sections() {
    let mesh = Mesh::from_gmsh(square().as_bytes()).unwrap();
    assert_eq!(mesh.coordinates(), [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
    assert_eq!(mesh.cells(), [0, 1, 2, 0, 2, 3]);
    assert_eq!(mesh.tags(), None, "the surface is in no group");
}

#[test]
fn malformed_text_is_refused_with_its_line() {
    assert_eq!(edited("1 1 0\n", "1 one 0\n"), "line 16: expected a number, found `one`");
    assert_eq!(edited("12 1 4 8", "12 1 4 -8"), "line 28: expected a non-negative integer, found `-8`");
    assert_eq!(
        edited("12 1 4 8\n", "12 1 4\n"),
        "line 29: expected a non-negative integer, found `$EndElements`"
    );
    assert_eq!(edited("$EndNodes", "$EndNode"), "line 21: expected $EndNodes, found `$EndNode`");
    assert_eq!(edited("$EndComment", "$Fin"), "line 4: section `$Comment` is never closed by `$EndComment`");
    assert_eq!(edited("$Comment", "Comment"), "line 4: expected the start of a section, found `Comment`");
    assert_eq!(
        edited("2 1 2 2\n", "2 1 77 2\n"),
        "line 26: element type 77 is not known; save triangles, tetrahedra, quadrangles or hexahedra"
    );
    assert_eq!(message(b""), "line 1: expected $MeshFormat, found the end of the file");
    let cut = &square()[..square().len() - 20];
    assert_eq!(
        message(cut.as_bytes()),
        "line 28: expected a non-negative integer, found the end of the file"
    );
}

#[test]
fn malformed_binary_is_refused_with_its_byte() {
    let error = Mesh::from_gmsh(&PLATE_BINARY[..PLATE_BINARY.len() - 100]).unwrap_err();
    let GmshError::Syntax { place: Place::Byte(byte), .. } = error else { panic!("{error}") };
    assert!(byte > PLATE_BINARY.len() - 110);
}

#[test]
fn wrong_meshes_are_refused_by_element() {
    assert_eq!(edited("12 1 4 8", "12 1 4 9"), "element 12 has node 9, which the file does not define");
    assert_eq!(edited("\n8\n", "\n2\n"), "node 2 is defined twice");
    assert_eq!(
        edited("0 1 0\n0 1 0 1", "0 1 0.5\n0 1 0 1"),
        "node 2 lies 4.082e-1 off the plane through nodes 1, 4, 8, but a mesh of triangles must lie in one plane; what curves in space is for `kingpost.meshes` of the Python package, so mesh a flat part, or the volume (`gmsh -3`)"
    );
    let turned = Mesh::from_gmsh(square().replacen("12 1 4 8", "12 1 8 4", 1).as_bytes()).unwrap();
    assert_eq!((turned.determinant(0), turned.determinant(1), turned.volume()), (1.0, -1.0, 1.0));
    let flat = Mesh::from_gmsh(square().replacen("12 1 4 8", "12 1 4 4", 1).as_bytes()).unwrap_err();
    assert!(matches!(flat, GmshError::Cell { element: 12, source: MeshError::Degenerate { cell: 1, .. } }));
    let points = square().replacen(
        "2 3 10 12\n1 1 1 1\n10 1 2\n2 1 2 2\n11 1 2 4\n12 1 4 8\n",
        "1 1 10 10\n0 1 15 1\n10 1\n",
        1,
    );
    assert!(matches!(Mesh::from_gmsh(points.as_bytes()).unwrap_err(), GmshError::NoCells));
    let lines = square().replacen("2 1 2 2\n11 1 2 4\n12 1 4 8\n", "1 1 1 1\n11 2 4\n", 1);
    assert_eq!(
        message(lines.as_bytes()),
        "node 2 lies 7.071e-1 off the line through nodes 1, 4, but a mesh of lines must lie on one straight line; what curves in space is for `kingpost.meshes` of the Python package, so mesh a flat part, or the volume (`gmsh -3`)"
    );
}

/// One way to spoil a file.
#[derive(Clone, Debug)]
enum Edit {
    Set(usize, u8),
    Delete(usize, usize),
    Insert(usize, Vec<u8>),
    Copy(usize, usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let text = proptest::sample::select(vec![
        "0",
        "-1",
        "1e999",
        "nan",
        "99999999999999999999",
        "$",
        "\n",
        " ",
        "4",
    ]);
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Edit::Set(at, byte)),
        (any::<usize>(), 1..40_usize).prop_map(|(at, n)| Edit::Delete(at, n)),
        (any::<usize>(), text).prop_map(|(at, text)| Edit::Insert(at, text.as_bytes().to_vec())),
        (any::<usize>(), any::<usize>(), 1..40_usize).prop_map(|(from, to, n)| Edit::Copy(from, to, n)),
    ]
}

fn apply(edit: &Edit, file: &mut Vec<u8>) {
    if file.is_empty() {
        return;
    }
    let length = file.len();
    match edit {
        Edit::Set(at, byte) => file[at % length] = *byte,
        Edit::Delete(at, n) => drop(file.drain(at % length..(at % length + n).min(length))),
        Edit::Insert(at, text) => drop(file.splice(at % length..at % length, text.iter().copied())),
        Edit::Copy(from, to, n) => {
            let piece = file[from % length..(from % length + n).min(length)].to_vec();
            file.splice(to % length..to % length, piece);
        }
    }
}

proptest! {
    #![proptest_config(config(1500))]

    /// A spoilt file gives a mesh or a message, and a mesh that it gives passes every check.
    #[test]
    fn spoilt_files_never_panic(which in 0..4_usize, edits in proptest::collection::vec(edit(), 1..6)) {
        let old = sector("quadrangle_2_22_binary");
        let mut file = [square().as_bytes(), PLATE, PLATE_BINARY, &old][which].to_vec();
        for edit in &edits {
            apply(edit, &mut file);
        }
        match Mesh::from_gmsh(&file) {
            Ok(mesh) => prop_assert!((0..mesh.n_cells()).all(|cell| mesh.determinant(cell) != 0.0)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
