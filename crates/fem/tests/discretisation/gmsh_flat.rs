//! Flat meshes in space are read as meshes of the line or the plane, by an isometry.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use kingpost_fem::element::CellShape::{self, Interval, Quadrilateral, Triangle};
use kingpost_fem::mesh::{GmshError, Mesh};
use kingpost_fem::numbering::Numbering;
use kingpost_fem::vtu::{Vtu, VtuEncoding};
use kingpost_sample::config;
use proptest::prelude::*;

/// The file of a unit mesh whose points are moved to space.
fn file(shape: CellShape, to_space: impl Fn([f64; 3]) -> [f64; 3]) -> String {
    let mesh = Mesh::unit(shape, 4).unwrap();
    let mut text = format!("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{}\n", mesh.n_vertices());
    for vertex in 0..mesh.n_vertices() {
        let mut point = [0.0; 3];
        point.iter_mut().zip(mesh.vertex(vertex as u32)).for_each(|(p, x)| *p = *x);
        let [x, y, z] = to_space(point);
        text += &format!("{} {x:?} {y:?} {z:?}\n", vertex + 1);
    }
    text += &format!("$EndNodes\n$Elements\n{}\n", mesh.n_cells());
    for cell in 0..mesh.n_cells() {
        let v: Vec<u32> = mesh.cell(cell).iter().map(|v| v + 1).collect();
        let nodes: Vec<u32> = if v.len() == 4 { vec![v[0], v[1], v[3], v[2]] } else { v };
        let kind = [1, 2, 0, 3][shape as usize];
        let nodes: Vec<String> = nodes.iter().map(u32::to_string).collect();
        text += &format!("{} {kind} 2 7 1 {}\n", cell + 1, nodes.join(" "));
    }
    text + "$EndElements\n"
}

fn read(shape: CellShape, to_space: impl Fn([f64; 3]) -> [f64; 3]) -> Mesh {
    Mesh::from_gmsh(file(shape, to_space).as_bytes()).unwrap()
}

#[test]
fn planes_along_axes_keep_their_coordinates() {
    let unit = Mesh::unit(Triangle, 4).unwrap();
    for (to_space, described) in [
        (
            (|[x, y, _]| [x, y, 3.0]) as fn([f64; 3]) -> [f64; 3],
            Some("the plane z = 3, of which x and y are the coordinates"),
        ),
        (|[x, z, _]| [x, 0.0, z], Some("the plane y = 0, of which x and z are the coordinates")),
        (|[y, z, _]| [-2.5, y, z], Some("the plane x = -2.5, of which y and z are the coordinates")),
        (|[x, y, _]| [x, y, 0.0], None),
        // what rounding leaves
        (|[x, y, _]| [x, y, 1e-14 * (x - y)], None),
        (|[x, y, _]| [x, y, 3.0 + 1e-14 * x], Some("the plane z = 3, of which x and y are the coordinates")),
    ] {
        let mesh = read(Triangle, to_space);
        assert_eq!(mesh.coordinates(), unit.coordinates());
        assert_eq!(mesh.cells(), unit.cells());
        assert_eq!(mesh.placement().map(ToString::to_string).as_deref(), described);
    }
    let line = read(Interval, |[x, ..]| [1.0, x, -1.0]);
    assert_eq!(line.coordinates(), Mesh::unit(Interval, 4).unwrap().coordinates());
    let placement = line.placement().unwrap().to_string();
    assert_eq!(placement, "the line x = 1, z = -1, of which y is the coordinate");
    assert_eq!(read(Interval, |[x, ..]| [x, 0.0, 0.0]).placement(), None);
}

#[test]
fn a_tilted_plane_says_where_it_lies() {
    // around the first axis by the angle of 3, 4 and 5
    let mesh = read(Quadrilateral, |[x, y, _]| [x, 0.8 * y - 0.6, 0.6 * y + 0.8]);
    assert_eq!(
        mesh.placement().unwrap().to_string(),
        "the plane through (0, -0.6, 0.8) along (1, 0, 0) and (0, 0.8, 0.6), of which lengths in these \
         directions are the coordinates"
    );
    for (found, expected) in
        mesh.coordinates().iter().zip(Mesh::unit(Quadrilateral, 4).unwrap().coordinates())
    {
        // 1e-15: a sum of three products
        assert!((found - expected).abs() < 4e-15, "{found} {expected}");
    }
}

/// Unit vectors at right angles: products of rotations around the axes.
fn frame(angles: [f64; 3]) -> [[f64; 3]; 3] {
    let mut frame = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    for (axis, angle) in angles.into_iter().enumerate() {
        let (sin, cos) = angle.sin_cos();
        let (i, j) = ((axis + 1) % 3, (axis + 2) % 3);
        for row in &mut frame {
            (row[i], row[j]) = (cos * row[i] - sin * row[j], sin * row[i] + cos * row[j]);
        }
    }
    frame
}

proptest! {
    #![proptest_config(config(300))]

    /// Anywhere in space, at any size: lengths are kept, points come back, and a bulge is refused.
    #[test]
    fn meshes_are_read_by_an_isometry(
        shape in proptest::sample::select(vec![Interval, Triangle, Quadrilateral]),
        angles in [-4.0..4.0_f64, -4.0..4.0, -4.0..4.0],
        shift in [-9.0..9.0_f64, -9.0..9.0, -9.0..9.0],
        exponent in -9..9_i32,
        thin in -3..1_i32,
    ) {
        let (frame, size) = (frame(angles), 10_f64.powi(exponent));
        let to_space = |bulge: f64| move |[x, y, _]: [f64; 3]| {
            let local = [x, y * 10_f64.powi(thin), bulge * x * (1.0 - x)];
            [0, 1, 2].map(|k| size * (shift[k] + (0..3).map(|i| frame[i][k] * local[i]).sum::<f64>()))
        };
        let mesh = read(shape, to_space(0.0));
        let unit = Mesh::unit(shape, 4).unwrap();
        let largest = size * 12.0;
        let placement = mesh.placement().unwrap();
        let dim = shape.dim();
        for (i, a) in placement.axes().iter().enumerate() {
            for (j, b) in placement.axes().iter().enumerate() {
                let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                prop_assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-14);
            }
        }
        for vertex in 0..mesh.n_vertices() as u32 {
            let mut local = [0.0; 3];
            local.iter_mut().zip(unit.vertex(vertex)).for_each(|(l, x)| *l = *x);
            let (back, point) = (placement.position(mesh.vertex(vertex)), to_space(0.0)(local));
            for (a, b) in back.iter().zip(point) {
                // the rounding of coordinates of this size, in the plane and in the points
                prop_assert!((a - b).abs() < 1e-13 * largest, "{} {}", a, b);
            }
            for other in 0..vertex {
                let square = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
                let mut far = [0.0; 3];
                far.iter_mut().zip(unit.vertex(other)).for_each(|(l, x)| *l = *x);
                let found = square(mesh.vertex(vertex), mesh.vertex(other)).sqrt();
                let expected = square(&to_space(0.0)(local), &to_space(0.0)(far)).sqrt();
                prop_assert!((found - expected).abs() < 1e-13 * largest, "{} {}", found, expected);
            }
        }
        // orientation follows the axes that are kept, whatever turned the plane
        prop_assert!(placement.axes().len() == dim);
        let curved = Mesh::from_gmsh(file(shape, to_space(1e-6)).as_bytes());
        let flat_error = matches!(curved, Err(GmshError::NotFlat { .. }));
        // a line that bends in a plane is no straight line, a surface that bends is no plane
        prop_assert!(flat_error, "{:?}", curved.map(|mesh| mesh.placement().cloned()));
    }
}

/// Curved cells of a flat mesh keep their nodes: the ring of `scripts/test_meshes.py`, turned.
#[test]
fn curved_cells_in_a_plane_are_read() {
    let path = format!("{}/tests/data/sector_triangle_4_41.msh", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let turned: Vec<String> = text
        .lines()
        .map(|line| {
            let numbers: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            // the only lines of three numbers, the third of which is 0, are points
            match numbers[..] {
                [x, y, 0.0] => format!("{:?} {y:?} {:?}", 0.6 * x, 0.8 * x),
                _ => line.to_owned(),
            }
        })
        .collect();
    let (flat, mesh) =
        (Mesh::from_gmsh(text.as_bytes()).unwrap(), Mesh::from_gmsh(turned.join("\n").as_bytes()).unwrap());
    assert_eq!((mesh.geometry_degree(), mesh.n_cells()), (4, flat.n_cells()));
    // 1e-13: the same determinants of rounded nodes
    assert!((mesh.volume() / flat.volume() - 1.0).abs() < 1e-13);
    assert!(mesh.placement().is_some());
}

#[test]
fn surfaces_that_curve_in_space_are_refused_by_a_node() {
    let bulged = file(Triangle, |[x, y, _]| [x, y, if (x, y) == (0.5, 0.5) { 0.25 } else { 0.0 }]);
    let error = Mesh::from_gmsh(bulged.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("but a mesh of triangles must lie in one plane; what curves in space"), "{error}");
    for bad in ["inf", "nan"] {
        let text = file(Triangle, |point| point).replacen("0.25 0.0 0.0", &format!("0.25 0.0 {bad}"), 1);
        assert_eq!(
            Mesh::from_gmsh(text.as_bytes()).unwrap_err().to_string(),
            "node 2 has a coordinate that is not finite"
        );
    }
}

#[test]
fn coordinates_at_the_ends_of_their_range_do_not_overflow() {
    for size in [1e-310, 1e-160, 1e160, 1e308] {
        let to_space = |[x, y, _]: [f64; 3]| [x, y, 0.75 * x + 0.5].map(|x| size * (x - 0.5));
        match Mesh::from_gmsh(file(Triangle, to_space).as_bytes()) {
            Ok(mesh) => assert!(mesh.placement().is_some(), "{size:e}"),
            // areas that are no numbers any more
            Err(GmshError::Cell { .. }) => {}
            Err(other) => panic!("{size:e}: {other}"),
        }
    }
}

/// Files for ParaView show a flat mesh where it lies.
#[test]
fn vtu_files_show_the_mesh_in_space() {
    let mesh = read(Triangle, |[x, z, _]| [x, 2.0, z]);
    let numbering = Numbering::new(&mesh, 1).unwrap();
    let field: Vec<f64> = numbering.dof_points(&mesh);
    let mut vtu = Vtu::new(&mesh, 1).unwrap();
    vtu.field("u", &numbering, &field).unwrap();
    let text = String::from_utf8(vtu.to_bytes(VtuEncoding::Ascii)).unwrap();
    let array = |name: &str| -> Vec<f64> {
        let start = text.find(&format!("Name=\"{name}\"")).unwrap();
        let rows = &text[start..start + text[start..].find("</DataArray>").unwrap()];
        let rows = rows.split_once('>').unwrap().1;
        rows.split_whitespace().map(|word| word.parse().unwrap()).collect()
    };
    let (points, vectors) = (array("Points"), array("u"));
    assert_eq!(points.len(), 3 * mesh.n_vertices());
    for (point, vector) in points.chunks(3).zip(vectors.chunks(3)) {
        assert_eq!((point[1], [point[0], 0.0, point[2]]), (2.0, [vector[0], vector[1], vector[2]]));
    }
}
