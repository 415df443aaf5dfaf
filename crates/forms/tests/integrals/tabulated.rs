//! Forms exported from UFL, lowered and interpreted, against results of another assembler.
//!
//! `tests/tabulated` holds forms with arrays on small meshes and the results of FFCx's kernels.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::{Numbering, NumberingOrder};
use kingpost_fem::sparse::{CsrPart, CsrPattern};
use kingpost_forms::form::{
    FunctionSpace, coefficient, constant, coordinate, dot, dx, grad, inner, sqrt, test, vector_constant,
};
use kingpost_forms::import::{Array, Imported, MeshInputs, from_json};
use kingpost_forms::lowering::{
    LoweredKernel, LoweredRole, LoweringOptions, MatrixResult, TabulatedOptions, lower, tabulate,
};
use kingpost_forms::tabulated::{IntegralType, Precision, Role, TabulatedForm, json_schema};
use kingpost_interp::{Memory, Value, interpret};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn read(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tabulated");
    std::fs::read_to_string(dir.join(name)).unwrap()
}

fn flat(value: &Json, list: &mut Vec<f64>) {
    match value {
        Json::Array(parts) => parts.iter().for_each(|p| flat(p, list)),
        number => list.push(number.as_f64().unwrap()),
    }
}

fn numbers(value: &Json) -> Vec<f64> {
    let mut list = Vec::new();
    flat(value, &mut list);
    list
}

fn integers(value: &Json) -> Vec<i32> {
    numbers(value).into_iter().map(|v| v as i32).collect()
}

fn shape(value: &Json) -> Vec<usize> {
    match value.as_array() {
        Some(list) => std::iter::once(list.len()).chain(list.first().map_or(vec![], shape)).collect(),
        None => vec![],
    }
}

/// A form with its arrays and the expected results.
struct Sample {
    form: TabulatedForm,
    check: Json,
}

impl Sample {
    fn read(name: &str) -> Self {
        let form = TabulatedForm::from_json(&read(&format!("{name}.json"))).unwrap();
        Self { form, check: serde_json::from_str(&read(&format!("{name}.check.json"))).unwrap() }
    }

    fn lowered(&self, matrix: MatrixResult) -> Imported {
        Imported::new(self.form.clone(), &TabulatedOptions { matrix, ..TabulatedOptions::default() }).unwrap()
    }

    /// The arrays of a kernel, without its outputs.
    fn arrays(&self, lowered: &LoweredKernel) -> BTreeMap<String, Array> {
        let (form, check) = (&self.form, &self.check);
        let mut arrays = BTreeMap::new();
        for space in &form.spaces {
            for (kind, name) in [("maps", space.map_name()), ("states", space.states_name())] {
                if let Some(map) = check[kind].get(&space.name) {
                    arrays.insert(name, Array::new(shape(map), integers(map)));
                }
            }
        }
        for function in &form.functions {
            let array = &check["arrays"][&function.name];
            arrays.insert(function.name.clone(), Array::new(shape(array), numbers(array)));
        }
        for constant in &form.constants {
            let values = &check["constants"][&constant.name];
            arrays.insert(constant.name.clone(), Array::new(constant.shape.clone(), numbers(values)));
        }
        arrays.extend(self.entities(lowered));
        arrays
    }

    /// The cells or facets of a kernel.
    fn entities(&self, lowered: &LoweredKernel) -> Vec<(String, Array)> {
        let kind = match lowered.over {
            IntegralType::Cell => {
                let ids = lowered.subdomains.iter().map(i64::to_string);
                let cells: Vec<i32> = ids.flat_map(|id| integers(&self.check["cells"][id])).collect();
                return vec![("listed_cells".into(), Array::new([cells.len()], cells))]
                    .into_iter()
                    .filter(|_| !lowered.subdomains.is_empty())
                    .collect();
            }
            IntegralType::ExteriorFacet => "exterior_facet",
            IntegralType::InteriorFacet => "interior_facet",
        };
        let facets = &self.check["facets"][kind];
        let tags = integers(&facets["tags"]);
        let ids = &lowered.subdomains;
        let is_in = |f: &usize| ids.is_empty() || ids.contains(&i64::from(tags[*f]));
        let chosen: Vec<usize> = (0..tags.len()).filter(is_in).collect();
        let list = |name: &str| {
            let all = integers(&facets[name]);
            let width = all.len() / tags.len();
            let values: Vec<i32> =
                chosen.iter().flat_map(|f| all[f * width..(f + 1) * width].to_vec()).collect();
            let shape = if width == 1 { vec![chosen.len()] } else { vec![chosen.len(), width] };
            (name.to_owned(), Array::new(shape, values))
        };
        let names = ["facet_cells", "local_facets", "facet_states"];
        let has = |name: &&str| lowered.arguments.iter().any(|a| a.name == **name);
        names.into_iter().filter(has).map(list).collect()
    }

    /// The results of all kernels, each output as a flat array (matrices dense).
    fn results(&self, matrix: MatrixResult) -> BTreeMap<String, Vec<f64>> {
        let imported = self.lowered(matrix);
        let mut results: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (k, lowered) in imported.kernels.iter().enumerate() {
            let mut memory = imported.bind(k, &self.arrays(lowered)).unwrap_or_else(|e| panic!("{e}"));
            interpret(&lowered.kernel, &mut memory).unwrap();
            for (place, output) in self.form.outputs.iter().enumerate() {
                let Some(found) = memory.get(&output.name) else { continue };
                let found = found.to_f64();
                let found = match self.form.rank == 2 && matrix == MatrixResult::Cells {
                    true => self.assembled(lowered, place, &found, &memory),
                    false => found,
                };
                let sum = results.entry(output.name.clone()).or_insert_with(|| vec![0.0; found.len()]);
                sum.iter_mut().zip(found).for_each(|(s, v)| *s += v);
            }
        }
        results
    }

    /// The dense matrix of matrices of entities.
    fn assembled(&self, lowered: &LoweredKernel, output: usize, found: &[f64], memory: &Memory) -> Vec<f64> {
        let n_entities = match lowered.over {
            IntegralType::Cell => self.check["n_cells"].as_u64().unwrap() as usize,
            IntegralType::ExteriorFacet | IntegralType::InteriorFacet => {
                memory.get("facet_cells").unwrap().len()
                    / if lowered.over == IntegralType::InteriorFacet { 2 } else { 1 }
            }
        };
        let sides = if lowered.over == IntegralType::InteriorFacet { 2 } else { 1 };
        let rows = |space: usize, entity: usize| -> Vec<usize> {
            let space = &self.form.spaces[space];
            let map = integers(&self.check["maps"][&space.name]);
            let cells = match lowered.over {
                IntegralType::Cell => vec![entity],
                IntegralType::ExteriorFacet | IntegralType::InteriorFacet => {
                    let cells = memory.get("facet_cells").unwrap().to_f64();
                    (0..sides).map(|s| cells[entity * sides + s] as usize).collect()
                }
            };
            let dofs = cells.iter().flat_map(|c| map[c * space.columns..(c + 1) * space.columns].to_vec());
            dofs.flat_map(|d| (0..space.block).map(move |b| d as usize * space.block + b)).collect()
        };
        let spaces = &self.form.outputs[output].spaces;
        let size = shape(&self.check["results"][&self.form.outputs[output].name]);
        let mut dense = vec![0.0; size[0] * size[1]];
        let (n, m) = (rows(spaces[0], 0).len(), rows(spaces[1], 0).len());
        for entity in 0..n_entities {
            let (r, c) = (rows(spaces[0], entity), rows(spaces[1], entity));
            for (i, row) in r.iter().enumerate() {
                for (j, col) in c.iter().enumerate() {
                    dense[row * size[1] + col] += found[(entity * n + i) * m + j];
                }
            }
        }
        dense
    }

    /// Largest error relative to the largest entry.
    fn error(&self, results: &BTreeMap<String, Vec<f64>>) -> f64 {
        let mut error = 0.0_f64;
        for output in &self.form.outputs {
            let (found, expected) = (&results[&output.name], numbers(&self.check["results"][&output.name]));
            assert_eq!(found.len(), expected.len());
            let size = expected.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
            assert!(size > 1e-8);
            let far = found.iter().zip(&expected).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
            error = error.max(if far.is_nan() { f64::INFINITY } else { far / size });
        }
        error
    }
}

/// Sums of some hundred products of numbers of size 1 in f64.
const TOLERANCE: f64 = 1e-12;

fn agrees(name: &str) {
    let sample = Sample::read(name);
    let error = sample.error(&sample.results(MatrixResult::Cells));
    assert!(error <= TOLERANCE, "{name}: {error}");
}

macro_rules! samples {
    ($($name:ident),* $(,)?) => { $(#[test] fn $name() { agrees(stringify!($name)); })* };
}

samples! {
    block_stokes, curl_curl, energy, face_penalty, hyperelasticity, interior_penalty, laplace, laplace_matrix,
    collocated, mixed_poisson, prism_robin, stokes, vector_mass,
}

#[test]
fn a_form_survives_its_text() {
    for name in ["laplace", "interior_penalty", "mixed_poisson", "collocated"] {
        let form = Sample::read(name).form;
        assert_eq!(TabulatedForm::from_json(&form.to_json().unwrap()).unwrap(), form);
    }
}

#[test]
fn outputs_of_kernels_have_roles() {
    let imported = Sample::read("interior_penalty").lowered(MatrixResult::Cells);
    let names: Vec<&str> = imported.kernels.iter().map(|k| k.kernel.name.as_str()).collect();
    assert_eq!(names.len(), 3);
    for kernel in &imported.kernels {
        assert!(kernel.arguments.iter().any(|a| a.role == LoweredRole::Output { output: 0 }));
    }
}

#[test]
fn a_sparse_matrix_is_assembled_in_place() {
    for name in ["laplace_matrix", "stokes"] {
        let sample = Sample::read(name);
        let imported = sample.lowered(MatrixResult::Sparse);
        let lowered = &imported.kernels[0];
        let space = &sample.form.spaces[sample.form.outputs[0].spaces[0]];
        let map = integers(&sample.check["maps"][&space.name]);
        let expected = numbers(&sample.check["results"]["y"]);
        let n = shape(&sample.check["results"]["y"])[0];
        let pattern = sample.form.pattern(0, [&map, &map], [n, n]).unwrap();
        let mut arrays = sample.arrays(lowered);
        arrays.insert("y_positions".into(), Array::positions(&pattern));
        arrays.insert("y".into(), Array::new([pattern.columns.len()], vec![0.0; pattern.columns.len()]));
        let mut memory = imported.bind(0, &arrays).unwrap_or_else(|e| panic!("{e}"));
        interpret(&lowered.kernel, &mut memory).unwrap();
        let values = memory.get("y").unwrap().to_f64();
        let mut dense = vec![0.0; n * n];
        for row in 0..n {
            for k in pattern.row_starts[row] as usize..pattern.row_starts[row + 1] as usize {
                dense[row * n + pattern.columns[k] as usize] = values[k];
            }
        }
        let error = sample.error(&BTreeMap::from([("y".to_owned(), dense)]));
        assert!(error <= TOLERANCE && expected.len() == n * n, "{name}: {error}");
    }
}

#[test]
fn positions_may_lie_in_wider_rows() {
    let sample = Sample::read("laplace");
    let options = TabulatedOptions { position_width: Some(3), ..TabulatedOptions::default() };
    let imported = Imported::new(sample.form.clone(), &options).unwrap();
    let mut arrays = sample.arrays(&imported.kernels[0]);
    let x = arrays["x"].values.to_f64();
    let wide: Vec<f64> = x.chunks_exact(2).flat_map(|p| [p[0], p[1], f64::NAN]).collect();
    arrays.insert("x".into(), Array::new([x.len() / 2, 3], wide));
    let mut memory = imported.bind(0, &arrays).unwrap();
    interpret(&imported.kernels[0].kernel, &mut memory).unwrap();
    let error = sample.error(&BTreeMap::from([("y".to_owned(), memory.get("y").unwrap().to_f64())]));
    assert!(error <= TOLERANCE, "{error}");
    let options = TabulatedOptions { position_width: Some(1), ..TabulatedOptions::default() };
    let error = Imported::new(sample.form, &options).unwrap_err().to_string();
    assert_eq!(error, "`position_width`: found 1, needed at least 2, the dimension of space");
}

#[test]
fn single_precision_has_its_own_arrays() {
    let mut sample = Sample::read("laplace");
    sample.form.scalar = Precision::F32;
    let imported = sample.lowered(MatrixResult::Cells);
    let lowered = &imported.kernels[0];
    let narrow = |array: Array| match array.values {
        Value::F64(list) => Array::new(array.shape, list.into_iter().map(|v| v as f32).collect::<Vec<f32>>()),
        values => Array { shape: array.shape, values },
    };
    let wide = sample.arrays(lowered);
    let error = imported.bind(0, &wide).unwrap_err().to_string();
    assert_eq!(error, "argument `x`: found elements of type `f64`, needed `f32`");
    let arrays: BTreeMap<String, Array> = wide.into_iter().map(|(name, a)| (name, narrow(a))).collect();
    let mut memory = imported.bind(0, &arrays).unwrap();
    interpret(&lowered.kernel, &mut memory).unwrap();
    let error = sample.error(&BTreeMap::from([("y".to_owned(), memory.get("y").unwrap().to_f64())]));
    // 1e-5: sums of some dozen products in f32
    assert!(error <= 1e-5 && error > 1e-12, "{error}");
}

#[test]
fn arrays_that_do_not_fit_are_named() {
    let sample = Sample::read("laplace");
    let imported = sample.lowered(MatrixResult::Cells);
    let refused = |name: &str, array: Option<Array>| {
        let mut arrays = sample.arrays(&imported.kernels[0]);
        match array {
            Some(array) => arrays.insert(name.into(), array),
            None => arrays.remove(name),
        };
        imported.bind(0, &arrays).unwrap_err().to_string()
    };
    let cases = [
        (refused("u", None), "argument `u`: found no array, needed `f64` of shape [n_p2]"),
        (
            refused("u", Some(Array::new([5, 5], vec![0.0; 25]))),
            "argument `u`: found the shape [5, 5], needed `f64` of shape [n_p2]",
        ),
        (
            refused("p2_dofs", Some(Array::new([7, 6], vec![0; 42]))),
            "argument `p2_dofs`: found the shape [7, 6], needed `i32` of shape [n_cells, 6], where `x_dofs` says that \
             n_cells is 8",
        ),
        (refused("kappa", None), "argument `kappa`: found no value, needed 1 numbers of shape []"),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
    let unknown = refused("uu", Some(Array::new([1], vec![0.0])));
    assert!(
        unknown.starts_with("argument `uu`: found a name that the form does not have, needed one of"),
        "{unknown}"
    );
}

#[test]
fn parts_that_do_not_fit_are_named() {
    let text = read("laplace.json");
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        TabulatedForm::from_json(&text.replacen(from, to, 1)).unwrap_err().to_string()
    };
    let cases = [
        (
            refused("\"kingpost_form\":1", "\"kingpost_form\":2"),
            "`kingpost_form`: found version 2, needed 1; export the form again",
        ),
        (
            refused("\"cell\":\"triangle\"", "\"cell\":\"polygon\""),
            "unknown variant `polygon`, expected one of `interval`, `triangle`, `tetrahedron`, `quadrilateral`, \
             `hexahedron`, `prism`, `pyramid`",
        ),
        (refused("\"gdim\":2", "\"gdim\":1"), "`gdim`: found 1, needed 2 to 3 for cells of a triangle"),
        (
            refused("\"rank\":1", "\"rank\":2"),
            "`outputs[0].spaces`: found 1 spaces, needed 2, the rank of the form",
        ),
        (refused("[\"weight\"]", "[\"wait\"]"), "found the node `wait`"),
        (
            refused("\"name\":\"kappa\"", "\"name\":\"u\""),
            "`constants[0].name`: found `u` a second time, needed different names",
        ),
        (
            refused("\"block\":2", "\"block\":3"),
            "`functions[0].space`: found a space of 3 components, needed 2 components, those of a position",
        ),
        (refused("\"functions\"", "\"function\""), "unknown field `function`"),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn the_schema_knows_every_key() {
    let schema = json_schema();
    let keys =
        |value: &Json| -> Vec<String> { value["properties"].as_object().unwrap().keys().cloned().collect() };
    let form: Json = serde_json::from_str(&read("interior_penalty.json")).unwrap();
    let top = keys(&schema);
    assert!(form.as_object().unwrap().keys().all(|k| top.contains(k)), "{top:?}");
    let integral = keys(&schema["$defs"]["Integral"]);
    let used = form["integrals"].as_array().unwrap().iter().flat_map(|i| i.as_object().unwrap().keys());
    for key in used {
        assert!(integral.contains(key), "{key}");
    }
    assert_eq!(schema["$defs"]["Space"]["additionalProperties"], Json::Bool(false));
    assert_eq!(schema["$defs"]["Node"]["prefixItems"][0]["enum"].as_array().unwrap().len(), 18);
}

#[test]
fn a_form_of_the_language_is_the_same_kernel_from_its_text() {
    let cell = CellShape::Triangle;
    let (vector, scalar) = (FunctionSpace::vector(cell, 2), FunctionSpace::scalar(cell, 2));
    let (u, p, v) = (coefficient("u", &vector), coefficient("p", &scalar), test(&vector));
    let (k, d, x) = (constant("k"), vector_constant("d", 2), coordinate(cell));
    let form =
        k * p * inner(grad(&u), grad(&v)) * dx() + dot(d, &v) * sqrt(dot(&x, &x)) * dx().with_degree(4);
    let options = LoweringOptions::new("two_rules");
    let text = tabulate(&form, &options).unwrap().to_json().unwrap();
    let imported = from_json(&text).unwrap();
    assert_eq!(imported.kernels.len(), 1);
    assert_eq!(imported.kernels[0].kernel, lower(&form, &options).unwrap().kernel);
}

/// Four triangles around the middle of a square whose lower side has tag 1, and the upper one 2.
const SQUARE: &[u8] = b"$MeshFormat
2.2 0 8
$EndMeshFormat
$Nodes
5
1 0 0 0
2 1 0 0
3 1 1 0
4 0 1 0
5 0.4 0.5 0
$EndNodes
$Elements
6
1 1 2 1 1 1 2
2 1 2 2 2 3 4
3 2 2 7 1 1 2 5
4 2 2 7 1 2 3 5
5 2 2 8 1 3 4 5
6 2 2 8 1 4 1 5
$EndElements
";

fn on_square(name: &str, order: NumberingOrder) -> (Imported, MeshInputs) {
    let imported = from_json(&read(&format!("{name}.json"))).unwrap();
    let mut next = 0.0;
    let mut draw = || {
        next = (next + 0.37) % 1.0;
        next
    };
    let inputs = imported.mesh_inputs(&Mesh::from_gmsh(SQUARE).unwrap(), order, &mut draw).unwrap();
    (imported, inputs)
}

#[test]
fn the_entities_of_a_subdomain_are_those_of_its_tag() {
    let (imported, inputs) = on_square("interior_penalty", NumberingOrder::ByDimension);
    // cells share no numbers, as nodes do not say whether functions jump
    assert_eq!(inputs.order, NumberingOrder::FirstTouch);
    let list = |kernel: usize, name: &str| inputs.entities[kernel][name].values.to_f64();
    assert_eq!(inputs.cells, 4);
    // the side of tag 1 is the edge of the first two vertices of the first cell
    assert_eq!((list(1, "facet_cells"), list(1, "local_facets")), (vec![0.0], vec![2.0]));
    assert_eq!(imported.kernels[1].subdomains, [1]);
    // the four edges at the middle lie between the cells
    let mut pairs: Vec<Vec<f64>> = list(2, "facet_cells").chunks(2).map(<[f64]>::to_vec).collect();
    pairs.iter_mut().for_each(|pair| pair.sort_by(f64::total_cmp));
    pairs.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(pairs, [[0.0, 1.0], [0.0, 3.0], [1.0, 2.0], [2.0, 3.0]]);
}

/// Degrees of freedom of a mesh are one where cells share a node, as in the numbering of the
/// language, in either order.
#[test]
fn nodes_on_a_mesh_are_numbered_once() {
    for order in [NumberingOrder::FirstTouch, NumberingOrder::ByDimension] {
        nodes_are_numbered_once(order);
    }
}

fn nodes_are_numbered_once(order: NumberingOrder) {
    let (_, inputs) = on_square("laplace", order);
    assert_eq!(inputs.order, order);
    let mesh = Mesh::from_gmsh(SQUARE).unwrap();
    let numbering = Numbering::new_in_order(&mesh, 2, order).unwrap();
    let array = &inputs.arrays["p2_dofs"];
    assert_eq!(array.shape, [4, 6]);
    let map = array.values.to_f64();
    let pairs: BTreeSet<(i64, i32)> =
        map.iter().map(|n| *n as i64).zip(numbering.dofs().iter().copied()).collect();
    // a bijection, although the nodes of a cell stand in another order: as many pairs as numbers
    let numbers: BTreeSet<i64> = pairs.iter().map(|(n, _)| *n).collect();
    assert_eq!((numbers.len(), pairs.len(), numbering.n_dofs()), (13, 13, 13));
    // by dimension, the eight edges come before the vertices, as in the other numbering
    let are_last =
        |map: &[i64]| map.chunks(6).all(|row| row.iter().enumerate().all(|(k, n)| (k < 3) == (*n >= 8)));
    let [own, other]: [Vec<i64>; 2] =
        [map.iter().map(|n| *n as i64).collect(), numbering.dofs().iter().map(|n| i64::from(*n)).collect()];
    let is_by_dimension = order == NumberingOrder::ByDimension;
    assert_eq!([are_last(&own), are_last(&other)], [is_by_dimension; 2]);
    let x = inputs.arrays["x"].values.to_f64();
    let x_map = inputs.arrays["x_dofs"].values.to_f64();
    for (k, vertex) in mesh.cells().iter().enumerate() {
        let row = x_map[k] as usize;
        assert_eq!(&x[2 * row..2 * row + 2], mesh.vertex(*vertex));
    }
}

/// The entries of a mass action on ones add up to the area.
#[test]
fn a_form_on_a_mesh_computes_with_its_geometry() {
    let (imported, mut inputs) = on_square("vector_mass", NumberingOrder::FirstTouch);
    let u = imported.form.functions.iter().find(|f| f.role == Role::Coefficient).unwrap();
    let ones = inputs.arrays.get_mut(u.argument_name()).unwrap();
    let n = ones.values.len();
    ones.values = vec![1.0; n].into();
    let mut memory = imported.bind(0, &inputs.of(0)).unwrap();
    for (name, shape) in imported.form.constants.iter().map(|c| (&c.name, c.size())) {
        memory.set(name, vec![1.0; shape]);
    }
    interpret(&imported.kernels[0].kernel, &mut memory).unwrap();
    let sum: f64 = memory.f64s("y").unwrap().iter().sum();
    // two components, each the area of the square
    assert!((sum - 2.0).abs() < 1e-13, "{sum}");
}

/// The gradient of ones is zero, and a term on the boundary, of triangles and squares, adds up to its area.
#[test]
fn facets_of_two_shapes_are_summed() {
    let imported = from_json(&read("prism_robin.json")).unwrap();
    let mesh = Mesh::unit(CellShape::Prism, 2).unwrap();
    let mut inputs = imported.mesh_inputs(&mesh, NumberingOrder::FirstTouch, &mut || 0.5).unwrap();
    let u = imported.form.functions.iter().find(|f| f.role == Role::Coefficient).unwrap();
    let ones = inputs.arrays.get_mut(u.argument_name()).unwrap();
    ones.values = vec![1.0; ones.values.len()].into();
    for (place, expected) in [0.0, 6.0].into_iter().enumerate() {
        let mut memory = imported.bind(place, &inputs.of(place)).unwrap();
        interpret(&imported.kernels[place].kernel, &mut memory).unwrap();
        let sum: f64 = memory.f64s("y").unwrap().iter().sum();
        // 1e-12: sums of some thousand terms of less than one
        assert!((sum - expected).abs() < 1e-12, "{place}: {sum}");
    }
}

#[test]
fn cells_of_other_kinds_are_refused() {
    let imported = Sample::read("prism_robin").lowered(MatrixResult::Cells);
    let cube = Mesh::unit(CellShape::Hexahedron, 1).unwrap();
    let inputs = imported.mesh_inputs(&cube, NumberingOrder::FirstTouch, &mut || 0.0);
    assert_eq!(inputs.unwrap_err().to_string(), "the mesh has cells of kind `hexahedron`, needed `prism`");
}

#[test]
fn meshes_that_do_not_fit_are_refused() {
    let refused = |name: &str, mesh: &Mesh| {
        let imported = from_json(&read(&format!("{name}.json"))).unwrap();
        imported.mesh_inputs(mesh, NumberingOrder::FirstTouch, &mut || 0.5).unwrap_err().to_string()
    };
    let square = Mesh::from_gmsh(SQUARE).unwrap();
    assert_eq!(
        refused("face_penalty", &square),
        "the mesh has cells of kind `triangle`, needed `tetrahedron`"
    );
    let other = String::from_utf8(SQUARE.to_vec()).unwrap().replace("1 1 2 1 1 1 2", "1 1 2 5 1 1 2");
    assert_eq!(
        refused("interior_penalty", &Mesh::from_gmsh(other.as_bytes()).unwrap()),
        "the mesh has boundary facets of tags 2, 5, needed boundary facets of tag 1, the subdomain of an integral; \
         give the mesh such a physical group"
    );
    let curved = b"$MeshFormat
2.2 0 8
$EndMeshFormat
$Nodes
6
1 0 0 0
2 1 0 0
3 0 1 0
4 0.5 0.1 0
5 0.5 0.5 0
6 0 0.5 0
$EndNodes
$Elements
1
1 9 2 1 1 1 2 3 4 5 6
$EndElements
";
    assert_eq!(
        refused("laplace", &Mesh::from_gmsh(curved).unwrap()),
        "the mesh has cells of degree 2, of 6 nodes each, needed at most 3 nodes a cell, as the positions of the form \
         have; export the form on such cells"
    );
}

/// Two intervals, and the facet between them with the rows of both sides: one pattern, in which the
/// facet joins nodes that share no cell.
#[test]
fn kernels_share_a_pattern() {
    let cells = [0, 1, 2, 3];
    let parts = [
        CsrPart { extents: [2, 2], rows: &cells, columns: &cells },
        CsrPart { extents: [4, 4], rows: &cells, columns: &cells },
    ];
    let [of_cells, of_facets] = <[_; 2]>::try_from(CsrPattern::joint(5, 4, &parts).unwrap()).unwrap();
    assert_eq!(of_cells.row_starts, [0, 4, 8, 12, 16, 16]);
    assert_eq!(of_cells.columns, [0, 1, 2, 3].repeat(4));
    assert_eq!(*of_cells.positions(), [0, 1, 4, 5, 10, 11, 14, 15]);
    assert_eq!(*of_facets.positions(), *(0..16).collect::<Vec<i32>>());
    assert_eq!((&of_facets.row_starts, &of_facets.columns), (&of_cells.row_starts, &of_cells.columns));
    let alone = CsrPattern::of_rows(4, 4, 2, 2, &cells, &cells).unwrap();
    assert_eq!(alone.columns, [0, 1, 0, 1, 2, 3, 2, 3]);
    let wrong = [CsrPart { extents: [2, 2], rows: &cells, columns: &cells[..3] }];
    assert_eq!(
        CsrPattern::joint(4, 4, &wrong).unwrap_err().to_string(),
        "`map`: found 4 rows and 3 columns, needed 2 rows and 2 columns an entity"
    );
}
