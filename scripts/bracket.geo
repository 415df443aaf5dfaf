// The demo's mesh: an L-shaped mounting bracket with a rounded inner corner, a bore and six bolt holes;
// 5,798 nodes, 22,393 tetrahedra.
//
//   gmsh scripts/bracket.geo -3 -format msh41 -o meshes/bracket.msh     (Debian's gmsh 4.8.4)
//
// Lengths in units of 10 mm. Only the volume is a physical group, so only tetrahedra are saved.
SetFactory("OpenCASCADE");

// The L: a base plate of 8 x 6 x 0.8 and a wall of 0.8 x 6 x 6.
Box(1) = {0, 0, 0, 8, 6, 0.8};
Box(2) = {0, 0, 0, 0.8, 6, 6};
BooleanUnion(3) = { Volume{1}; Delete; }{ Volume{2}; Delete; };

// The fillet of radius 1 in the inner corner: a bar less a cylinder.
Box(4) = {0.8, 0, 0.8, 1, 6, 1};
Cylinder(5) = {1.8, -1, 1.8, 0, 8, 0, 1};
BooleanDifference(6) = { Volume{4}; Delete; }{ Volume{5}; Delete; };
BooleanUnion(7) = { Volume{3}; Delete; }{ Volume{6}; Delete; };

// Holes: four bolts in the base, one bore and two bolts in the wall.
Cylinder(11) = {3.5, 1.2, -1, 0, 0, 3, 0.45};
Cylinder(12) = {3.5, 4.8, -1, 0, 0, 3, 0.45};
Cylinder(13) = {6.8, 1.2, -1, 0, 0, 3, 0.45};
Cylinder(14) = {6.8, 4.8, -1, 0, 0, 3, 0.45};
Cylinder(15) = {-1, 3, 3.8, 3, 0, 0, 1.1};
Cylinder(16) = {-1, 1, 5.2, 3, 0, 0, 0.3};
Cylinder(17) = {-1, 5, 5.2, 3, 0, 0, 0.3};
BooleanDifference(20) = { Volume{7}; Delete; }{ Volume{11:17}; Delete; };

Physical Volume("bracket", 1) = {20};
Mesh.MeshSizeMax = 0.32;
Mesh.MeshSizeFromCurvature = 16;
Mesh.MeshSizeMin = 0.1;
Mesh.Algorithm = 6;
Mesh.Algorithm3D = 1;
Mesh.Optimize = 1;
Mesh.RandomSeed = 1;
Mesh.SaveAll = 0;
General.NumThreads = 1;
