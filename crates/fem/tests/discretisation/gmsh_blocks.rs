//! Gmsh files of any cells anywhere in space, as gmsh wrote them.
#![allow(clippy::unwrap_used, clippy::panic)]

use kingpost_fem::mesh::{GmshBlocks, GmshError, Mesh};
use std::collections::{BTreeMap, BTreeSet};

fn read(name: &str) -> GmshBlocks {
    GmshBlocks::read(format!("{}/tests/data/{name}.msh", env!("CARGO_MANIFEST_DIR")).as_ref()).unwrap()
}

/// By kind and order of cells, how many there are, in all and in each group.
type Counts<'a> = BTreeMap<(&'a str, usize), (usize, BTreeMap<i32, usize>)>;

fn counts(found: &GmshBlocks) -> Counts<'_> {
    let count = |n_nodes: usize, nodes: &[u32]| nodes.len() / n_nodes;
    let of = |b: &kingpost_fem::mesh::GmshBlock| {
        let nodes = match (b.cell, b.order) {
            ("tetrahedron", 1) => 4,
            ("tetrahedron", _) => 10,
            ("prism", 1) => 6,
            ("prism", _) => 18,
            ("pyramid", 1) => 5,
            ("pyramid", _) => 14,
            ("hexahedron", 1) => 8,
            ("hexahedron", _) => 27,
            (other, _) => panic!("{other}"),
        };
        let groups = b.groups.iter().map(|(group, cells)| (*group, cells.len())).collect();
        ((b.cell, b.order), (count(nodes, &b.nodes), groups))
    };
    found.blocks.iter().map(of).collect()
}

#[test]
fn four_kinds_of_cells_share_their_nodes() {
    let found = read("solids_1");
    let groups = |list: &[(i32, usize)]| list.iter().copied().collect::<BTreeMap<i32, usize>>();
    let expected = BTreeMap::from([
        (("hexahedron", 1), (8, groups(&[(1, 8)]))),
        (("prism", 1), (28, groups(&[(1, 28)]))),
        (("pyramid", 1), (4, groups(&[(1, 4), (2, 4)]))),
        (("tetrahedron", 1), (101, groups(&[(1, 101), (2, 101)]))),
    ]);
    assert_eq!(counts(&found), expected);
    let all: BTreeSet<u32> = found.blocks.iter().flat_map(|b| &b.nodes).copied().collect();
    assert_eq!(all.len() * 3, found.positions.len(), "every node is one of a cell");
    assert_eq!(found.names["last box"], (3, 2));
    assert_eq!((found.names["inlet"], found.names["everything"]), ((2, 3), (3, 1)));
    // the inlet is in a second group with the other orientation, and the base in that group alone
    let in_groups = |groups: &[i32]| {
        found.facets.iter().filter(|(_, own)| own.iter().copied().eq(groups.iter().copied())).count()
    };
    assert_eq!((in_groups(&[3, 4]), in_groups(&[4]), found.facets.len()), (4, 14, 18));
    assert!(found.facets.iter().all(|(corners, _)| corners.len() == 3 || corners.len() == 4));
}

#[test]
fn partitions_change_neither_cells_nor_groups() {
    let (whole, parts) = (read("solids_2"), read("solids_parts"));
    assert_eq!(counts(&parts), counts(&whole));
    assert_eq!((parts.facets.len(), parts.names), (whole.facets.len(), whole.names));
}

#[test]
fn a_sphere_is_a_surface_in_space() {
    let found = read("sphere_2");
    assert_eq!(
        (found.dim, found.blocks.len(), found.blocks[0].cell, found.blocks[0].order),
        (2, 1, "triangle", 2)
    );
    // gmsh places all nodes on the surface, those on edges too
    for point in found.positions.chunks_exact(3) {
        let radius = point.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!((radius - 1.0).abs() < 1e-9, "{radius}");
    }
}

#[test]
fn files_of_a_mesh_have_its_cells_and_groups() {
    for suffix in ["22", "22_binary", "41", "41_binary", "parts_22", "parts_41_binary"] {
        let path = format!("{}/tests/data/groups_{suffix}.msh", env!("CARGO_MANIFEST_DIR"));
        let (found, mesh) =
            (GmshBlocks::read(path.as_ref()).unwrap(), Mesh::read_gmsh(path.as_ref()).unwrap());
        assert_eq!(found.blocks[0].nodes, mesh.cells(), "{suffix}");
        assert_eq!(found.positions.len() / 3, mesh.n_vertices());
        let in_group = |group: i32| -> Vec<u32> {
            (0..mesh.n_cells())
                .filter(|c| mesh.tags().unwrap().of(*c).contains(&group))
                .map(|c| c as u32)
                .collect()
        };
        assert_eq!(found.blocks[0].groups, BTreeMap::from([(7, in_group(7)), (8, in_group(8))]), "{suffix}");
    }
}

#[test]
fn what_is_missing_is_named_by_its_tag() {
    let file = |elements: &str, z: &str| {
        format!(
            "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 3 1 3\n2 1 0 3\n1\n2\n3\n0 0 0\n1 0 0\n0 1 {z}\n$EndNodes\n\
             $Elements\n1 1 1 1\n{elements}\n$EndElements\n"
        )
    };
    let refused = |elements: &str, z: &str| GmshBlocks::new(file(elements, z).as_bytes()).unwrap_err();
    assert!(matches!(refused("2 1 2 1\n5 1 2 4", "0"), GmshError::UnknownNode { element: 5, node: 4 }));
    assert!(matches!(refused("2 1 2 1\n5 1 2 3", "nan"), GmshError::NotFinite { node: 3 }));
    assert!(matches!(refused("0 1 15 1\n5 1", "0"), GmshError::NoCells));
    let serendipity = refused("2 1 20 1\n5 1 2 3 1 2 3 1 2 3", "0").to_string();
    assert!(
        serendipity.starts_with("element 5 is a triangle without inner nodes; supported are"),
        "{serendipity}"
    );
    let names = "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$PhysicalNames\n1\n2 3 inlet\n$EndPhysicalNames\n";
    let error = GmshBlocks::new(names.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "line 6: expected a name in quotes, found `inlet`");
}
