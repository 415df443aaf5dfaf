//! Physical groups of Gmsh files: of each cell and facet all of them, in every format, counted by
//! the file's author and not by the reader.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::on_meshes::interpreted;
use kingpost_fem::element::CellShape::{self, Hexahedron, Interval, Quadrilateral, Tetrahedron, Triangle};
use kingpost_fem::mesh::{CellTags, Mesh};
use kingpost_fem::numbering::NumberingOrder;
use kingpost_forms::form::{Form, FunctionSpace, Inputs, Measure, avg, dS, ds, dx, test};
use kingpost_forms::import::{Imported, from_json};
use kingpost_forms::lowering::{LoweringOptions, MeshForm};
use kingpost_interp::interpret;
use kingpost_sample::config;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Format {
    /// MSH 2.2 instead of 4.1.
    old: bool,
    binary: bool,
    /// Entities of MSH 4.1 in parts.
    partitioned: bool,
}

const FORMATS: [Format; 6] = {
    let text = Format { old: false, binary: false, partitioned: false };
    [
        text,
        Format { binary: true, ..text },
        Format { partitioned: true, ..text },
        Format { partitioned: true, binary: true, ..text },
        Format { old: true, ..text },
        Format { old: true, binary: true, ..text },
    ]
};

/// Random numbers of a case (Marsaglia's xorshift).
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for k in (1..list.len()).rev() {
            list.swap(k, self.below(k + 1));
        }
    }
}

/// Points in space, as bits: what an element is known by whatever its nodes are called.
type Place = BTreeSet<[u64; 3]>;

/// Cells and some facets of a unit mesh, in entities with groups.
struct Model {
    mesh: Mesh,
    /// The names of its vertices in the file.
    names: Vec<u64>,
    /// Dimension, vertices and entity.
    elements: Vec<(usize, Vec<u32>, i32)>,
    /// The groups of an entity as the file has them.
    groups: BTreeMap<(usize, i32), Vec<i32>>,
}

impl Model {
    fn draw(shape: CellShape, draw: &mut Draw) -> Self {
        let mesh = Mesh::unit(shape, [5, 2, 1, 2, 2, 2, 1][shape as usize]).unwrap();
        let dim = shape.dim();
        let mut names: Vec<u64> = (0..mesh.n_vertices() as u64).map(|name| 3 * name + 2).collect();
        draw.shuffle(&mut names);
        let cells = (0..mesh.n_cells()).map(|cell| (dim, mesh.cell(cell).to_vec()));
        let facets = mesh.facets().into_iter().map(|facet| {
            let corners = shape.facets()[facet.side.facet as usize];
            let cell = mesh.cell(facet.side.cell as usize);
            (dim - 1, corners.iter().map(|corner| cell[*corner]).collect())
        });
        let mut elements = Vec::new();
        for (dim, vertices) in cells.chain(facets) {
            if dim == shape.dim() || draw.below(3) > 0 {
                elements.push((dim, vertices, [3, 1, 11, 12][draw.below(4)]));
            }
        }
        draw.shuffle(&mut elements);
        let mut groups = BTreeMap::new();
        for dim in [dim - 1, dim] {
            for entity in [3, 1, 11, 12] {
                let draw_group = |_| [11, -11, 12, -12, 1, 70][draw.below(6)];
                let mut list: Vec<i32> = (0..4).map(draw_group).collect();
                list.truncate(draw.below(4));
                groups.insert((dim, entity), list);
            }
        }
        Self { mesh, names, elements, groups }
    }

    fn place(&self, vertices: &[u32]) -> Place {
        place(&self.mesh, vertices)
    }

    /// The groups of each cell or facet, as the file means them.
    fn expected(&self, dim: usize) -> BTreeMap<Place, BTreeSet<i32>> {
        let of_dim = self.elements.iter().filter(|element| element.0 == dim);
        let groups = |entity: i32| self.groups[&(dim, entity)].iter().map(|group| group.abs()).collect();
        of_dim.map(|(_, vertices, entity)| (self.place(vertices), groups(*entity))).collect()
    }

    /// The nodes of an element in Gmsh's order and by their names in the file.
    fn nodes(&self, vertices: &[u32], mirrored: bool) -> Vec<u64> {
        let square = |v: &[u32]| vec![v[0], v[1], v[3], v[2]];
        let is_square = vertices.len() == 4 && self.mesh.shape() != Tetrahedron;
        let mut nodes = match vertices.len() {
            4 if is_square => square(vertices),
            5 => [square(&vertices[..4]), vertices[4..].to_vec()].concat(),
            8 => [square(&vertices[..4]), square(&vertices[4..])].concat(),
            _ => vertices.to_vec(),
        };
        match nodes.len() {
            4 if mirrored && is_square => nodes.reverse(),
            5 | 6 | 8 => {}
            n if mirrored && n > 1 => nodes.swap(0, 1),
            _ => {}
        }
        nodes.into_iter().map(|vertex| self.names[vertex as usize]).collect()
    }

    /// Gmsh's number of the kind of element.
    fn kind(dim: usize, vertices: &[u32]) -> i32 {
        match (dim, vertices.len()) {
            (0, _) => 15,
            (1, _) => 1,
            (2, 3) => 2,
            (2, _) => 3,
            (_, 4) => 4,
            (_, 5) => 7,
            (_, 6) => 6,
            _ => 5,
        }
    }
}

fn place(mesh: &Mesh, vertices: &[u32]) -> Place {
    let point = |vertex: &u32| {
        let mut point = [0; 3];
        point.iter_mut().zip(mesh.vertex(*vertex)).for_each(|(bits, x)| *bits = x.to_bits());
        point
    };
    vertices.iter().map(point).collect()
}

/// A file in the making.
struct Writer {
    binary: bool,
    bytes: Vec<u8>,
}

impl Writer {
    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn section(&mut self, name: &str, content: impl FnOnce(&mut Self)) {
        self.text(&format!("${name}\n"));
        content(self);
        self.text(&format!("\n$End{name}\n"));
    }

    fn ints(&mut self, numbers: impl IntoIterator<Item = i32>) {
        for number in numbers {
            match self.binary {
                true => self.bytes.extend(number.to_le_bytes()),
                false => self.text(&format!("{number} ")),
            }
        }
    }

    fn sizes(&mut self, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            match self.binary {
                true => self.bytes.extend(number.to_le_bytes()),
                false => self.text(&format!("{number} ")),
            }
        }
    }

    fn reals(&mut self, numbers: impl IntoIterator<Item = f64>) {
        for number in numbers {
            match self.binary {
                true => self.bytes.extend(number.to_le_bytes()),
                false => self.text(&format!("{number:?} ")),
            }
        }
    }
}

impl Model {
    fn file(&self, format: Format, draw: &mut Draw) -> Vec<u8> {
        let mut file = Writer { binary: format.binary, bytes: Vec::new() };
        let version = if format.old { "2.2" } else { "4.1" };
        file.text(&format!("$MeshFormat\n{version} {} 8\n", i32::from(format.binary)));
        if format.binary {
            file.ints([1]);
            file.text("\n");
        }
        file.text("$EndMeshFormat\n$PhysicalNames\n1\n1 11 \"a side\"\n$EndPhysicalNames\n");
        if format.old {
            self.old_sections(&mut file, draw);
        } else {
            self.new_sections(&mut file, format.partitioned, draw);
        }
        file.bytes
    }

    fn point(&self, vertex: u32) -> [f64; 3] {
        let mut point = [0.0; 3];
        point.iter_mut().zip(self.mesh.vertex(vertex)).for_each(|(p, x)| *p = *x);
        point
    }

    fn entity(&self, file: &mut Writer, (dim, number): (usize, i32), part_of: Option<(i32, i32)>) {
        file.ints([number]);
        if let Some((entity, partition)) = part_of {
            file.ints([dim as i32, entity]);
            file.sizes([1]);
            file.ints([partition]);
        }
        file.reals((0..if dim == 0 { 3 } else { 6 }).map(f64::from));
        let groups = &self.groups[&(dim, part_of.map_or(number, |of| of.0))];
        file.sizes([groups.len() as u64]);
        file.ints(groups.iter().copied());
        if dim > 0 {
            file.sizes([2]);
            file.ints([5, -6]);
        }
    }

    fn new_sections(&self, file: &mut Writer, partitioned: bool, draw: &mut Draw) {
        let of_dim = |dim: usize| self.groups.keys().filter(move |key| key.0 == dim);
        let counts = |times: usize| (0..4).map(move |dim| (of_dim(dim).count() * times) as u64);
        // readers may not rely on where the entities stand
        let first = draw.below(2) == 0;
        let entities = |file: &mut Writer| {
            file.section("Entities", |file| {
                file.sizes(counts(1));
                self.groups.keys().for_each(|key| self.entity(file, *key, None));
            });
            if partitioned {
                file.section("PartitionedEntities", |file| {
                    file.sizes([2, 1]);
                    file.ints([99, 2]); // a ghost entity of the second partition
                    file.sizes(counts(2));
                    for (dim, entity) in self.groups.keys() {
                        for part in [1, 2] {
                            self.entity(file, (*dim, 20 * entity + part), Some((*entity, part)));
                        }
                    }
                });
            }
        };
        if first {
            entities(file);
        }
        file.section("Nodes", |file| {
            let n = self.names.len() as u64;
            file.sizes([1, n, 1, 3 * n]);
            file.ints([self.mesh.shape().dim() as i32, 1, 0]);
            file.sizes([n]);
            file.sizes(self.names.iter().copied());
            (0..n as u32).for_each(|vertex| file.reals(self.point(vertex)));
        });
        file.section("Elements", |file| {
            let n = self.elements.len() as u64;
            file.sizes([n, n, 1, n]);
            for ((dim, vertices, entity), number) in self.elements.iter().zip(1..) {
                let part = 20 * entity + 1 + draw.below(2) as i32;
                file.ints([
                    *dim as i32,
                    if partitioned { part } else { *entity },
                    Self::kind(*dim, vertices),
                ]);
                file.sizes([1, number]);
                file.sizes(self.nodes(vertices, false));
            }
        });
        if !first {
            entities(file);
        }
    }

    /// An element once for each of its groups, as gmsh writes them: those of a group with the other
    /// orientation are mirrored.
    fn old_sections(&self, file: &mut Writer, draw: &mut Draw) {
        file.text(&format!("$Nodes\n{}\n", self.names.len()));
        for (name, vertex) in self.names.iter().zip(0..) {
            file.ints([*name as i32]);
            file.reals(self.point(vertex));
        }
        let mut entries = Vec::new();
        for (element, (dim, _, entity)) in self.elements.iter().enumerate() {
            let mut groups = self.groups[&(*dim, *entity)].clone();
            groups.sort_by_key(|group| group.abs());
            groups.dedup_by_key(|group| group.abs());
            if groups.is_empty() {
                groups.push(0);
            }
            entries.extend(groups.into_iter().map(|group| (element, group)));
        }
        draw.shuffle(&mut entries);
        file.text(&format!("\n$EndNodes\n$Elements\n{}\n", entries.len()));
        for ((element, group), number) in entries.into_iter().zip(1..) {
            let (dim, vertices, entity) = &self.elements[element];
            let group = if draw.below(2) == 0 { group } else { group.abs() };
            match file.binary {
                true => file.ints([Self::kind(*dim, vertices), 1, 4, number]),
                false => file.ints([number, Self::kind(*dim, vertices), 4]),
            }
            file.ints([group, *entity, 1, 1]);
            file.ints(self.nodes(vertices, group < 0).into_iter().map(|node| node as i32));
        }
        file.text("\n$EndElements\n");
    }
}

/// The tags of the mesh are those that the file means.
fn check_tags(model: &Model, mesh: &Mesh, what: &str) {
    let (shape, dim) = (mesh.shape(), mesh.shape().dim());
    let (cells, facets) = (model.expected(dim), model.expected(dim - 1));
    assert_eq!(mesh.n_cells(), model.mesh.n_cells(), "{what}");
    for cell in 0..mesh.n_cells() {
        let found: BTreeSet<i32> =
            mesh.tags().map_or(&[][..], |tags| tags.of(cell)).iter().copied().collect();
        assert_eq!(found, cells[&place(mesh, mesh.cell(cell))], "{what}: cell {cell}");
    }
    let mut tagged = 0;
    for facet in mesh.facets() {
        let cell = mesh.cell(facet.side.cell as usize);
        let corners = shape.facets()[facet.side.facet as usize];
        let vertices: Vec<u32> = corners.iter().map(|corner| cell[*corner]).collect();
        let found: BTreeSet<i32> = mesh.tags_of_facet(facet.side).collect();
        tagged += found.len();
        let expected = facets.get(&place(mesh, &vertices)).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{what}: {facet:?}");
    }
    assert_eq!(tagged, mesh.facet_tags().len(), "{what}");
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn every_group_of_a_cell_and_a_facet_counts(
        shape in proptest::sample::select(CellShape::ALL.to_vec()), format in 0..6_usize, seed in 1..u64::MAX
    ) {
        let mut draw = Draw(seed);
        let model = Model::draw(shape, &mut draw);
        let format = FORMATS[format];
        let what = format!("{shape} {format:?} {seed}");
        let mesh = Mesh::from_gmsh(&model.file(format, &mut draw)).unwrap_or_else(|e| panic!("{what}: {e}"));
        check_tags(&model, &mesh, &what);
        check_tags(&model, &mesh.reorder_for_locality(), &what);
    }
}

/// The length or area of what lies between points, or 1 for a point.
fn measure(points: &[Vec<f64>]) -> f64 {
    let from = |k: usize| {
        [0, 1, 2].map(|axis| points[k].get(axis).unwrap_or(&0.0) - points[0].get(axis).unwrap_or(&0.0))
    };
    let norm = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let area = || {
        let (a, b) = (from(1), from(2));
        norm([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
    };
    match points.len() {
        1 => 1.0,
        2 => norm(from(1)),
        3 => 0.5 * area(),
        _ => area(),
    }
}

/// Integrals of 1 over a group are the sums over all that belong to it, and a number that is no
/// group is refused.
#[test]
fn integrals_over_groups_are_sums_over_their_members() {
    for (seed, shape) in [Interval, Triangle, Quadrilateral, Tetrahedron, Hexahedron].into_iter().enumerate()
    {
        for format in [FORMATS[seed % 4], FORMATS[4 + seed % 2]] {
            let mut draw = Draw(41 + seed as u64);
            let model = Model::draw(shape, &mut draw);
            let mesh = Mesh::from_gmsh(&model.file(format, &mut draw)).unwrap();
            check_integrals(&model, &mesh, &format!("{shape} {format:?}"));
        }
    }
}

fn check_integrals(model: &Model, mesh: &Mesh, what: &str) {
    let (shape, dim) = (mesh.shape(), mesh.shape().dim());
    let v = test(&FunctionSpace::scalar(shape, 1));
    let facets = model.expected(dim - 1);
    let mut of_facets: BTreeMap<(bool, i32), f64> = BTreeMap::new();
    for facet in model.mesh.facets() {
        let cell = model.mesh.cell(facet.side.cell as usize);
        let corners = shape.facets()[facet.side.facet as usize];
        let vertices: Vec<u32> = corners.iter().map(|corner| cell[*corner]).collect();
        let points: Vec<Vec<f64>> =
            vertices.iter().map(|vertex| model.mesh.vertex(*vertex).to_vec()).collect();
        for tag in facets.get(&model.place(&vertices)).into_iter().flatten() {
            *of_facets.entry((facet.other.is_some(), *tag)).or_default() += measure(&points);
        }
    }
    let check = |form: &Form, measure: &str, expected: Option<f64>| match expected {
        Some(expected) => {
            let found: f64 = interpreted(form, mesh, &Inputs::new()).iter().sum();
            // 1e-13: sums of some dozens of parts of 1
            assert!((found - expected).abs() < 1e-13, "{what}: {measure}: {found}, needed {expected}");
        }
        None => {
            let form = MeshForm::new(form, &LoweringOptions::new("missing")).unwrap();
            let error = form.bind(0, mesh, &Inputs::new()).unwrap_err().to_string();
            assert!(error.contains("such a physical group"), "{what}: {measure}: {error}");
        }
    };
    let cells: Vec<BTreeSet<i32>> = model.expected(dim).into_values().collect();
    let tagged = |measure: Measure, tag: i32| measure.with_tag(tag);
    for tag in [1, 3, 11, 12, 70] {
        let n = cells.iter().filter(|groups| groups.contains(&tag)).count();
        let part = (n > 0).then(|| n as f64 / cells.len() as f64);
        check(&(&v * tagged(dx(), tag)), &format!("dx({tag})"), part);
        check(&(&v * tagged(ds(), tag)), &format!("ds({tag})"), of_facets.get(&(false, tag)).copied());
        let inner = avg(&v) * tagged(dS(), tag);
        check(&inner, &format!("dS({tag})"), of_facets.get(&(true, tag)).copied());
    }
}

/// The integral of 1 over the boundary facets of a group, of a form that UFL exported.
fn exported(subdomains: &[i64]) -> Imported {
    let mut json: serde_json::Value = serde_json::from_str(include_str!("boundary_length.json")).unwrap();
    json["integrals"][0]["subdomains"] = subdomains.into();
    from_json(&json.to_string()).unwrap()
}

fn length_of(file: &[u8], subdomains: &[i64]) -> Result<f64, String> {
    let (form, mesh) = (exported(subdomains), Mesh::from_gmsh(file).map_err(|e| e.to_string())?);
    let inputs =
        form.mesh_inputs(&mesh, NumberingOrder::FirstTouch, &mut || 0.5).map_err(|e| e.to_string())?;
    let mut memory = form.bind(0, &inputs.of(0)).map_err(|e| e.to_string())?;
    interpret(&form.kernels[0].kernel, &mut memory).map_err(|e| e.to_string())?;
    Ok(memory.f64s("y").unwrap().iter().sum())
}

/// The unit square in two triangles, of which the lower and the right side are curves 1 and 2.
fn square(curves: [&str; 2]) -> Vec<u8> {
    format!(
        "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Entities\n0 2 1 0\n1 0 0 0 1 0 0 {} 0\n2 1 0 0 1 1 0 {} 0\n\
         1 0 0 0 1 1 0 0 0\n$EndEntities\n$Nodes\n1 4 1 4\n2 1 0 4\n1\n2\n3\n4\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n\
         $EndNodes\n$Elements\n3 4 1 4\n1 1 1 1\n1 1 2\n1 2 1 1\n2 2 3\n2 1 2 2\n3 1 2 3\n4 1 3 4\n$EndElements\n",
        curves[0], curves[1]
    )
    .into_bytes()
}

#[test]
fn exported_forms_meet_signs_several_groups_and_none() {
    let close = |found: Result<f64, String>, expected: f64| {
        assert!((found.clone().unwrap() - expected).abs() < 1e-14, "{found:?}, needed {expected}");
    };
    close(length_of(&square(["1 11", "1 -11"]), &[11]), 2.0);
    let two = square(["2 11 13", "1 13"]);
    close(length_of(&two, &[11]), 1.0);
    close(length_of(&two, &[13]), 2.0);
    // of a facet in both parts of one integral, the integral is taken once
    close(length_of(&two, &[11, 13]), 2.0);
    // a curve in no group is in none, whatever its number
    let one = square(["0", "1 1"]);
    close(length_of(&one, &[1]), 1.0);
    let refused = length_of(&one, &[2]).unwrap_err();
    assert!(refused.contains("boundary facets of tags 1, needed"), "{refused}");
}

/// The square of `scripts/test_meshes.py`, as gmsh writes it whole and in three partitions.
#[test]
fn groups_of_files_that_gmsh_wrote_count() {
    for parts in ["", "_parts"] {
        for format in ["41", "41_binary", "22", "22_binary"] {
            let name = format!("groups{parts}_{format}");
            let path = format!("{}/../fem/tests/data/{name}.msh", env!("CARGO_MANIFEST_DIR"));
            let file = std::fs::read(path).unwrap();
            for (groups, expected) in [(&[11][..], 2.0), (&[12], 2.0), (&[11, 12], 3.0)] {
                let found = length_of(&file, groups).unwrap();
                // 1e-12: gmsh places nodes to 12 digits
                assert!((found - expected).abs() < 1e-12, "{name}: {groups:?}: {found}");
            }
            for entity in [1, 5, 6] {
                let error = length_of(&file, &[entity]).unwrap_err();
                assert!(error.contains("boundary facets of tags 11, 12, needed"), "{name}: {error}");
            }
            let mesh = Mesh::from_gmsh(&file).unwrap();
            assert!(mesh.tags().unwrap().iter().all(|groups| groups == [7, 8]), "{name}");
            assert!((mesh.volume() - 1.0).abs() < 1e-12, "{name}: {}", mesh.volume());
        }
    }
}

#[test]
fn cells_written_twice_in_one_group_are_duplicates() {
    let file = |second: &str| {
        format!(
            "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n$EndNodes\n\
             $Elements\n2\n1 3 2 7 1 1 2 3 4\n{second}\n$EndElements\n"
        )
    };
    let tags = |second: &str| Mesh::from_gmsh(file(second).as_bytes()).map(|mesh| mesh.tags().cloned());
    assert_eq!(tags("2 3 2 8 1 1 2 3 4").unwrap(), Some(CellTags::new([&[7, 8][..]])));
    // the other orientation, from another corner, under the same number
    assert_eq!(tags("1 3 2 -8 1 2 1 4 3").unwrap(), Some(CellTags::new([&[7, 8][..]])));
    for second in [
        "2 3 2 7 1 1 2 3 4", // in the same group
        "2 3 2 0 1 1 2 3 4", // in none
        "2 3 2 8 2 1 2 3 4", // of another surface
    ] {
        let error = tags(second).unwrap_err().to_string();
        assert!(error.contains("one is a duplicate, or they overlap"), "{second}: {error}");
    }
    // the same nodes and another quadrangle
    assert!(tags("2 3 2 8 1 1 3 2 4").is_err());
}

#[test]
fn what_is_not_read_is_named() {
    let message = |file: &str| Mesh::from_gmsh(file.as_bytes()).unwrap_err().to_string();
    assert_eq!(
        message(
            "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$ParametricNodes\n1\n1 0 0 0 0 1\n$EndParametricNodes\n"
        ),
        "line 4: section `$ParametricNodes` of MSH 2.2 is not supported; save nodes without parameters \
         (`Mesh.SaveParametric = 0`) or as MSH 4.1 (`gmsh -format msh41`)"
    );
    assert_eq!(
        message("$NOD\n1\n1 0 0 0\n$ENDNOD\n"),
        "line 1: version `1` (`$NOD`) is not supported; save the mesh as MSH 4.1 or 2.2 (`gmsh -format msh41`)"
    );
    let file = String::from_utf8(square(["1 -2147483648", "0"])).unwrap();
    assert_eq!(message(&file), "line 6: expected the number of a physical group, found `-2147483648`");
}
