//! Integrals over the boundary, over parts of meshes and on curved cells, by the divergence theorem
//! `∫ (F·n) v ds = ∫ div(F) v + F·grad(v) dx`.
#![allow(clippy::unwrap_used)] // what a failed test does

use crate::on_meshes::{interpreted, mesh, numbers};
use kingpost_fem::element::CellShape::{self, Hexahedron, Interval, Quadrilateral, Tetrahedron, Triangle};
use kingpost_fem::element::ElementFamily::{NedelecFirst, RaviartThomas};
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::ComposedNumbering;
use kingpost_forms::form::{
    Expr, Form, FormError, FunctionSpace, Inputs, as_vector, coefficient, coordinate, cos, derivative, div,
    ds, dx, facet_normal, grad, inner, sin, test,
};
use kingpost_forms::lowering::{LoweringOptions, MeshForm, lower};
use kingpost_forms::reference;

/// A vector field of degree 2 with different components.
fn field(cell: CellShape) -> Expr {
    let x = coordinate(cell);
    let component =
        |i: usize| &x[i] * &x[0] + (i as f64 + 1.0) * &x[cell.dim() - 1] - 0.3 * f64::from(i as u8);
    as_vector((0..cell.dim()).map(component))
}

/// The mesh with all vertices moved, also those of the boundary.
fn sheared(shape: CellShape) -> Mesh {
    let mesh = mesh(shape);
    let dim = shape.dim();
    let moved = |x: &[f64]| -> Vec<f64> {
        (0..dim)
            .map(|i| x[i] + 0.2 * x[(i + 1) % dim] * (1.0 + 0.5 * x[i]) - 0.1 * x[dim - 1].powi(2))
            .collect()
    };
    let coordinates = mesh.coordinates().chunks(dim).flat_map(moved).collect();
    Mesh::new(shape, coordinates, mesh.cells().to_vec(), None).unwrap()
}

fn assert_equal(found: &[f64], expected: &[f64], what: &str) {
    let size = expected.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    assert!(size > 0.01 && found.len() == expected.len(), "{what}: {size}");
    // 1e-13: sums of a few hundred terms on either side, of which those of inner nodes cancel
    let differs = found.iter().zip(expected).position(|(a, b)| (a - b).abs() > 1e-13 * size);
    assert_eq!(differs, None, "{what}: {found:?}, needed {expected:?}");
}

fn check_divergence(mesh: &Mesh, what: &str) {
    let cell = mesh.shape();
    let v = test(&FunctionSpace::scalar(cell, 2));
    let f = field(cell);
    let on_boundary = inner(&f, facet_normal(cell)) * &v * ds();
    let inside = (div(&f) * &v + inner(&f, grad(&v))) * dx();
    let none = Inputs::new();
    assert_equal(&interpreted(&on_boundary, mesh, &none), &interpreted(&inside, mesh, &none), what);
    // both kernels of one form
    let difference = interpreted(&(on_boundary - inside.clone() + 0.5 * inside.clone()), mesh, &none);
    let half: Vec<f64> = interpreted(&inside, mesh, &none).iter().map(|x| 0.5 * x).collect();
    assert_equal(&difference, &half, what);
}

#[test]
fn the_divergence_theorem_on_straight_cells() {
    for cell in [Interval, Triangle, Tetrahedron, Quadrilateral, Hexahedron] {
        check_divergence(&sheared(cell), cell.name());
    }
}

#[test]
fn the_divergence_theorem_on_curved_cells() {
    // higher degrees in three dimensions take the interpreter a minute
    for (name, highest) in [("triangle", 4), ("quadrangle", 4), ("tetrahedron", 2), ("hexahedron", 2)] {
        for degree in 1..=highest {
            let file =
                format!("{}/../fem/tests/data/sector_{name}_{degree}_41.msh", env!("CARGO_MANIFEST_DIR"));
            let mesh = Mesh::read_gmsh(file.as_ref()).unwrap();
            assert_eq!(mesh.geometry_degree(), degree);
            check_divergence(&mesh, &format!("{name} {degree}"));
            let constants = FunctionSpace::discontinuous(mesh.shape(), 0);
            let volumes = interpreted(&(test(&constants) * dx()), &mesh, &Inputs::new());
            assert!((volumes.iter().sum::<f64>() - mesh.volume()).abs() < 1e-14, "{name} {degree}");
        }
    }
}

/// Fields of degrees of freedom with normal components that neighbours share, mapped by Piola.
#[test]
fn the_divergence_theorem_for_raviart_thomas_fields() {
    for cell in [Triangle, Tetrahedron] {
        let (mesh, space) = (sheared(cell), FunctionSpace::of(cell, RaviartThomas, 2));
        let n = ComposedNumbering::of(&mesh, &space.element().unwrap()).unwrap().n_dofs();
        let inputs = Inputs::new().field("s", numbers(n));
        let (s, v) = (coefficient("s", &space), test(&FunctionSpace::scalar(cell, 2)));
        let on_boundary = inner(&s, facet_normal(cell)) * &v * ds();
        let inside = (div(&s) * &v + inner(&s, grad(&v))) * dx();
        let what = format!("{space}");
        assert_equal(
            &interpreted(&on_boundary, &mesh, &inputs),
            &interpreted(&inside, &mesh, &inputs),
            &what,
        );
    }
}

/// Mapped test functions: `∫ (curl u) · curl(v)`-like terms need tangents, `∫ g (v·n) ds` normals.
#[test]
fn mapped_test_functions_on_the_boundary() {
    for (cell, family) in [(Triangle, RaviartThomas), (Tetrahedron, RaviartThomas)] {
        let (mesh, v) = (sheared(cell), test(&FunctionSpace::of(cell, family, 1)));
        let g = &coordinate(cell)[0] * &coordinate(cell)[1] + 1.0;
        let on_boundary = &g * inner(&v, facet_normal(cell)) * ds();
        let inside = (inner(grad(&g), &v) + &g * div(&v)) * dx();
        let none = Inputs::new();
        assert_equal(
            &interpreted(&on_boundary, &mesh, &none),
            &interpreted(&inside, &mesh, &none),
            cell.name(),
        );
    }
}

/// On straight simplices the normal is constant on each facet, so that its derivatives are 0.
#[test]
fn the_normal_of_flat_facets_has_no_derivative() {
    let mesh = sheared(Triangle);
    let (x, n, v) = (coordinate(Triangle), facet_normal(Triangle), test(&FunctionSpace::scalar(Triangle, 1)));
    let moved = div(&n * &x[0]) * &v * ds().with_degree(4);
    let by_hand = &n[0] * &v * ds().with_degree(4);
    let none = Inputs::new();
    assert_equal(&interpreted(&moved, &mesh, &none), &interpreted(&by_hand, &mesh, &none), "div(n x[0])");
}

/// A square of two triangles, whose left and right sides, and cells, have tags.
const TAGGED: &[u8] = b"$MeshFormat
2.2 0 8
$EndMeshFormat
$Nodes
4
1 0 0 0
2 1 0 0
3 0 2 0
4 1 2 0
$EndNodes
$Elements
4
1 1 2 5 1 1 3
2 1 2 6 2 2 4
3 2 2 8 3 1 2 3
4 2 2 9 4 2 4 3
$EndElements
";

#[test]
fn measures_of_tags_are_over_parts() {
    let mesh = Mesh::from_gmsh(TAGGED).unwrap();
    let v = test(&FunctionSpace::scalar(Triangle, 1));
    let n = facet_normal(Triangle);
    let total = |form: &Form| interpreted(form, &mesh, &Inputs::new()).iter().sum::<f64>();
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-15, "{found} {expected}");
    // the first component of the normal: -1 on the left, 1 on the right, both of length 2
    close(total(&(&n[0] * &v * ds().with_tag(5))), -2.0);
    close(total(&(&n[0] * &v * ds().with_tag(6))), 2.0);
    close(total(&(&v * ds())), 6.0);
    close(total(&(&v * dx().with_tag(9))), 1.0);
    // four parts, each with a kernel of its own, and two measures of one part with one
    let all = &v * ds().with_tag(5)
        + 10 * (&v * ds().with_tag(6))
        + 100 * (&v * dx().with_tag(8))
        + 1000 * (&v * dx())
        + 1000 * (&v * dx().with_degree(5));
    assert_eq!(
        all.to_string(),
        "test * ds(tag = 5) + 10*test * ds(tag = 6) + 100*test * dx(tag = 8) + 1000*test * dx \
         + 1000*test * dx(degree = 5)"
    );
    let lowered = MeshForm::new(&all, &LoweringOptions::new("all")).unwrap();
    let names: Vec<&str> = lowered.kernels().iter().map(|k| k.kernel.name.as_str()).collect();
    assert_eq!(names, ["all_exterior_facets_5", "all_exterior_facets_6", "all_cells_8", "all"]);
    // 4022 and not 4122: the tag is of one of two cells
    close(total(&all) / 4122.0, (2.0 + 20.0 + 100.0 + 4000.0) / 4122.0);
    let missing = MeshForm::new(&(&v * ds().with_tag(7)), &LoweringOptions::new("seven")).unwrap();
    assert_eq!(
        missing.bind(0, &mesh, &Inputs::new()).unwrap_err().to_string(),
        "the mesh has boundary facets of tags 5, 6, needed boundary facets of tag 7, the subdomain of an \
         integral; give the mesh such a physical group"
    );
}

fn refusal(form: &Form, options: &LoweringOptions) -> String {
    MeshForm::new(form, options).unwrap_err().to_string()
}

#[test]
fn what_cannot_be_is_refused() {
    let (options, v) = (LoweringOptions::new("form"), test(&FunctionSpace::scalar(Triangle, 1)));
    let n = facet_normal(Triangle);
    assert_eq!(
        refusal(&(&n[0] * &v * dx()), &options),
        "`facet_normal`: found an integral over cells, by `dx`, needed one over facets, by `ds` or `dS`"
    );
    let curved = options.clone().with_geometry_degree(2);
    let moved = div(&n) * &v * ds();
    let derivative = "`facet_normal`: found its derivative on cells whose facets may be curved, needed straight \
                      simplices";
    assert_eq!(refusal(&moved, &curved), derivative);
    let square = test(&FunctionSpace::scalar(Quadrilateral, 1));
    assert_eq!(refusal(&(div(facet_normal(Quadrilateral)) * square * ds()), &options), derivative);
    let s = coefficient("s", &FunctionSpace::of(Triangle, RaviartThomas, 1));
    assert_eq!(
        refusal(&(div(&s) * &v * dx()), &curved),
        "found a derivative of a function with a Piola map on curved cells, needed its values alone or straight \
         cells"
    );
    let w = test(&FunctionSpace::of(Triangle, NedelecFirst, 1));
    assert_eq!(refusal(&(div(&w) * dx()), &curved), refusal(&(div(&s) * &v * dx()), &curved));
    assert_eq!(
        refusal(&(&v * dx()), &options.clone().with_geometry_degree(0)),
        "the maps of cells are of degree 0, needed at least 1, which straight cells have"
    );

    let region = |measure: &str, place: &str| {
        format!(
            "`{measure}`: found an integral over a part of the mesh, needed integrals over all cells, by `dx()`; \
             take `MeshForm` instead of {place}"
        )
    };
    let on_boundary = &v * ds().with_degree(2);
    assert_eq!(lower(&on_boundary, &options).unwrap_err().to_string(), region("ds(degree = 2)", "`lower`"));
    let mesh = Mesh::unit_square(1).unwrap();
    let found = reference::action(&(&v * dx().with_tag(3)), &mesh, &Inputs::new());
    assert_eq!(found.unwrap_err().to_string(), region("dx(tag = 3)", "the reference"));
    assert_eq!(
        lower(&(&v * dx()), &curved).unwrap_err(),
        FormError::Cells { place: "the geometry of the options" }
    );

    let lowered = MeshForm::new(&(&v * dx()), &curved).unwrap();
    assert_eq!(
        lowered.bind(0, &mesh, &Inputs::new()).unwrap_err().to_string(),
        "the maps of the mesh's cells are of degree 1, needed 2, for which the form was lowered; set \
         `with_geometry_degree(1)` in its options"
    );
    let straight = MeshForm::new(&(&v * dx()), &options).unwrap();
    assert_eq!(
        straight.bind(1, &mesh, &Inputs::new()).unwrap_err().to_string(),
        "kernel 1 of the form: found 1 kernels, needed a place below"
    );
}

/// A nonlinear boundary term, differentiated: its derivative is the difference quotient's limit.
#[test]
fn boundary_terms_are_differentiated() {
    let mesh = sheared(Tetrahedron);
    let space = FunctionSpace::scalar(Tetrahedron, 1);
    let (u, w, v) = (coefficient("u", &space), coefficient("w", &space), test(&space));
    let residual = cos(&u) * &facet_normal(Tetrahedron)[1] * &v * ds().with_degree(4);
    let linearised = derivative(&residual, &u, &w);
    let by_hand = -(sin(&u) * &w) * &facet_normal(Tetrahedron)[1] * &v * ds().with_degree(4);
    let n = mesh.n_vertices();
    let inputs = Inputs::new().field("u", numbers(n)).field("w", numbers(2 * n)[n..].to_vec());
    let (found, expected) = (interpreted(&linearised, &mesh, &inputs), interpreted(&by_hand, &mesh, &inputs));
    assert_equal(&found, &expected, "derivative");
}
