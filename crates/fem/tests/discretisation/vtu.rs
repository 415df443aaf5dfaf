//! VTU files: their text, and what independent readers find in them.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::Command;

use kingpost_fem::element::{CellShape, ElementFamily, FiniteElement, LagrangeVariant};
use kingpost_fem::mesh::{CellTags, Mesh};
use kingpost_fem::numbering::Numbering;
use kingpost_fem::vtu::{Vtu, VtuEncoding};
use serde_json::Value;

#[test]
fn text_of_two_triangles() {
    let mesh = Mesh::new(
        CellShape::Triangle,
        vec![0.0, 0.0, 1.0, 0.0, 1.0, 0.5, 0.0, 0.5],
        vec![0, 1, 2, 0, 2, 3],
        Some(vec![7, 8]),
    );
    let mesh = mesh.unwrap();
    let numbering = Numbering::new(&mesh, 1).unwrap();
    let mut vtu = Vtu::new(&mesh, 1).unwrap();
    vtu.field("a < b", &numbering, &[0.1, 1.0, 2.0, -3.0]).unwrap();
    vtu.cells("energy", &[0.5, 1e-20]).unwrap();
    let expected = r#"<?xml version="1.0"?>
<VTKFile type="UnstructuredGrid" version="1.0" byte_order="LittleEndian" header_type="UInt64">
<UnstructuredGrid>
<Piece NumberOfPoints="4" NumberOfCells="2">
<Points>
<DataArray type="Float64" Name="Points" NumberOfComponents="3" format="ascii">
0 0 0
1 0 0
1 0.5 0
0 0.5 0
</DataArray>
</Points>
<Cells>
<DataArray type="Int64" Name="connectivity" format="ascii">
0 1 2 0 2 3
</DataArray>
<DataArray type="Int64" Name="offsets" format="ascii">
3 6
</DataArray>
<DataArray type="UInt8" Name="types" format="ascii">
5 5
</DataArray>
</Cells>
<PointData>
<DataArray type="Float64" Name="a &lt; b" format="ascii">
0.1 1 2 -3
</DataArray>
</PointData>
<CellData>
<DataArray type="Int32" Name="tag" format="ascii">
7 8
</DataArray>
<DataArray type="Float64" Name="energy" format="ascii">
0.5 0.00000000000000000001
</DataArray>
</CellData>
</Piece>
</UnstructuredGrid>
</VTKFile>
"#;
    assert_eq!(String::from_utf8(vtu.to_bytes(VtuEncoding::Ascii)).unwrap(), expected);
    let binary = String::from_utf8(vtu.to_bytes(VtuEncoding::Base64)).unwrap();
    // 2 bytes, 5 and 5
    assert!(binary.contains("format=\"binary\">\nAgAAAAAAAAAFBQ==\n</DataArray>\n</Cells>"), "{binary}");
}

#[test]
fn refusals_name_the_field() {
    let mesh = Mesh::unit_square(1).unwrap();
    let numbering = Numbering::new(&mesh, 1).unwrap();
    let mut vtu = Vtu::new(&mesh, 1).unwrap();
    assert_eq!(
        vtu.field("u", &numbering, &[1.0; 5]).unwrap_err().to_string(),
        "field `u` has 5 values, needed a multiple of 4"
    );
    assert_eq!(
        vtu.cells("e", &[1.0; 3]).unwrap_err().to_string(),
        "field `e` has 3 values, needed a multiple of 2"
    );
    let rt = FiniteElement::new(CellShape::Triangle, ElementFamily::RaviartThomas, 1).unwrap();
    let rt = Numbering::of(&mesh, &rt).unwrap();
    assert_eq!(
        vtu.field("q", &rt, &[1.0; 5]).unwrap_err().to_string(),
        "field `q` is not continuous, and the cells share their nodes; write it with `Vtu::broken`"
    );
    let other = Numbering::new(&Mesh::unit_square(2).unwrap(), 1).unwrap();
    assert_eq!(
        vtu.field("u", &other, &[1.0; 9]).unwrap_err().to_string(),
        "field `u` is on 8 cells, and the mesh has 2"
    );
    assert_eq!(
        Vtu::new(&mesh, 5).unwrap_err().to_string(),
        "vtu cells of order 5 and shape triangle: supported are 1 to 4, of prisms 1 and 2, of pyramids 1; sample the \
         fields at a lower order"
    );
    let pyramids = Mesh::unit(CellShape::Pyramid, 1).unwrap();
    assert!(Vtu::new(&pyramids, 1).is_ok());
    assert!(
        Vtu::new(&pyramids, 2).unwrap_err().to_string().starts_with("vtu cells of order 2 and shape pyramid")
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A Python with meshio and VTK: that of `.venv`, or the one on the path.
fn python() -> Option<PathBuf> {
    let known = [root().join(".venv/bin/python"), PathBuf::from("python3")];
    known.into_iter().find(|python| {
        let found = Command::new(python).args(["-c", "import meshio, vtk"]).output();
        found.is_ok_and(|output| output.status.success())
    })
}

/// What the readers find in some files, each with a reference point of its cells.
fn read(python: &Path, files: &[(Vec<u8>, Vec<f64>)]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(python);
    command.arg(root().join("scripts/read_vtu.py"));
    for (i, (file, at)) in files.iter().enumerate() {
        let path = folder.path().join(format!("{i}.vtu"));
        std::fs::write(&path, file).unwrap();
        let at: Vec<String> = at.iter().map(f64::to_string).collect();
        command.arg(path).arg(at.join(","));
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

/// A field that no order of nodes but the right one gives.
fn field(x: &[f64]) -> f64 {
    x.iter().enumerate().map(|(axis, x)| (axis + 1) as f64 * x - x * x / (axis + 2) as f64).sum()
}

/// Curved cells of every shape and order: positions and values inside the cells are those of the
/// file's cells as VTK maps them.
#[test]
fn independent_readers_find_the_mesh_and_its_fields() {
    let Some(python) = python() else {
        println!("skipped: no Python with meshio and VTK (scripts/read_vtu.py says how to get them)");
        return;
    };
    let (mut cases, mut files) = (Vec::new(), Vec::new());
    for name in ["triangle", "quadrangle", "tetrahedron", "hexahedron", "prism"] {
        for order in 1..=if name == "prism" { 2 } else { 4 } {
            let file = root().join(format!("crates/fem/tests/data/sector_{name}_{order}_41.msh"));
            let mesh = match name {
                "prism" => {
                    let unit = Mesh::unit(CellShape::Prism, 1).unwrap();
                    unit.with_tags(CellTags::new([&[7][..], &[7]])).unwrap()
                }
                _ => Mesh::read_gmsh(&file).unwrap(),
            };
            let dim = mesh.shape().dim();
            let family = ElementFamily::Lagrange(LagrangeVariant::GllWarped);
            let element = FiniteElement::new(mesh.shape(), family, order).unwrap();
            let numbering = Numbering::of(&mesh, &element).unwrap();
            let u: Vec<f64> = numbering.dof_points(&mesh).chunks(dim).map(field).collect();
            let mut vtu = Vtu::new(&mesh, order).unwrap();
            vtu.field("u", &numbering, &u).unwrap();
            let encoding = if order % 2 == 0 { VtuEncoding::Ascii } else { VtuEncoding::Base64 };
            files.push((vtu.to_bytes(encoding), [0.2, 0.3, 0.4][..dim].to_vec()));
            cases.push((name, order, mesh, numbering, u));
        }
    }
    let all = read(&python, &files);
    assert_eq!(all.len(), 18);
    for (((name, order, mesh, numbering, u), (_, at)), found) in cases.iter().zip(&files).zip(all) {
        let reader = if *name == "hexahedron" && *order > 1 { "vtk" } else { "meshio" };
        assert_eq!(found["reader"], reader);
        assert_eq!(numbers(&found["tags"]), vec![7.0; mesh.n_cells()]);
        let table = numbering.element().tabulate(at, 0).unwrap();
        for cell in 0..mesh.n_cells() {
            let place = mesh.point(cell, at);
            let theirs = numbers(&found["places"][cell]);
            let dofs = numbering.cell(cell).iter().enumerate();
            let value: f64 = dofs.map(|(i, dof)| u[*dof as usize] * table.value(0, 0, i, 0)).sum();
            let distance = place.iter().zip(&theirs).fold(0.0_f64, |d, (a, b)| d.max((a - b).abs()));
            // 1e-13: sums of up to 125 terms
            assert!(distance < 1e-13, "{name} {order}: {place:?} {theirs:?}");
            let theirs = numbers(&found["values"][cell])[0];
            assert!((value - theirs).abs() < 1e-13, "{name} {order}: {value} {theirs}");
        }
    }
}

/// A field of a Nédélec element that is constant comes out constant at every node of every cell.
#[test]
fn vector_elements_are_mapped_to_the_cells() {
    let Some(python) = python() else {
        println!("skipped: no Python with meshio and VTK (scripts/read_vtu.py says how to get them)");
        return;
    };
    let mesh = Mesh::unit_square(2).unwrap();
    // the degree of freedom of an edge is the field along it: u = (1, 2)
    let element = FiniteElement::new(CellShape::Triangle, ElementFamily::NedelecFirst, 1).unwrap();
    let numbering = Numbering::of(&mesh, &element).unwrap();
    let mut u = vec![0.0; numbering.n_dofs()];
    for cell in 0..mesh.n_cells() {
        for (edge, ends) in CellShape::Triangle.edges().iter().enumerate() {
            let mut ends: Vec<u32> = ends.iter().map(|v| mesh.cell(cell)[*v]).collect();
            ends.sort_unstable();
            let (a, b) = (mesh.vertex(ends[0]), mesh.vertex(ends[1]));
            u[numbering.cell(cell)[edge] as usize] = (b[0] - a[0]) + 2.0 * (b[1] - a[1]);
        }
    }
    let mut vtu = Vtu::broken(&mesh, 1).unwrap();
    vtu.field("u", &numbering, &u).unwrap();
    let found = read(&python, &[(vtu.to_bytes(VtuEncoding::Base64), vec![0.2, 0.3])]).remove(0);
    assert_eq!(found["data"]["u"].as_array().unwrap().len(), 24);
    for (axis, value) in numbers(&found["data"]["u"]).into_iter().enumerate() {
        // 1e-14: a handful of operations
        assert!((value - [1.0, 2.0, 0.0][axis % 3]).abs() < 1e-14, "{axis}: {value}");
    }
}
