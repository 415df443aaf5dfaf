//! Recipes: saved, replayed, and what they say when a step fails.

use crate::page::proved;
use crate::story::{assert_style, kernel};
use insta::assert_snapshot;
use kingpost_ir::{AddressSpace, AxisTag};
use kingpost_primitives::primitives::{
    Assume, ChangeLayout, DuplicateIname, FixParameter, InterchangeInames, MakeAtomic, MapInames,
    PrefetchArray, SetAddressSpace, SplitIname, Tag, Tail,
};
use kingpost_primitives::{Lowering, Recipe, Selection, Step, schedule, steps};
use kingpost_sample::config;
use proptest::prelude::*;
use std::collections::BTreeSet;

const SCALE: &str = "kernel scale
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 2.0*y[i]
";

fn one_of_each() -> Recipe {
    Recipe::default()
        .then(Assume::at_least("n", 1))
        .then(Assume::injective("map"))
        .then(FixParameter::new("n", 8))
        .then(InterchangeInames::new("i", "j"))
        .then(MakeAtomic::tag("scatter"))
        .then(MakeAtomic { insns: Selection::Writes("y".into()) })
        .then(SetAddressSpace::new("t", AddressSpace::Local))
        .then(SplitIname::new("cell", 32))
        .then(SplitIname { outer: Some("block".into()), ..SplitIname::new("i", 4) })
        .then(SplitIname::new("k", 4).with_tail(Tail::Peel))
        .then(Tag::new("block", AxisTag::Group(0)))
        .then(Tag::new("j", AxisTag::Unrolled))
        .then(MapInames::new(["i", "j"], [vec![1, 1], vec![0, 1]]).shifted([0, -1]))
        .then(DuplicateIname::new(
            "cell",
            Selection::All(vec![Selection::Insn("scatter_*".into()), Selection::Inside("k".into())]),
        ))
        .then(PrefetchArray::new("x", "cell", AddressSpace::Local).by_work_items([32]).exactly())
}

#[test]
fn saved_as_json() {
    let recipe = one_of_each();
    let json = recipe.to_json().unwrap();
    assert_snapshot!(json);
    assert_eq!(steps().recipe(&json).unwrap(), recipe);
}

#[test]
fn no_steps_as_json() {
    assert_eq!(Recipe::default().to_json().unwrap(), "{\n  \"kingpost_recipe\": 1,\n  \"steps\": []\n}");
}

#[test]
fn printed_as_a_list() {
    assert_snapshot!(one_of_each().to_string());
}

/// A file from before recipes had a version. It must load for ever.
const WITHOUT_VERSION: &str = include_str!("recipe_without_version.json");

#[test]
fn reads_a_file_without_a_version() {
    assert_eq!(steps().recipe(WITHOUT_VERSION).unwrap(), one_of_each());
}

#[test]
fn reads_a_list_of_steps() {
    let (_, list) = WITHOUT_VERSION.split_once(':').unwrap();
    let (list, _) = list.rsplit_once('}').unwrap();
    assert_eq!(steps().recipe(list).unwrap(), one_of_each());
}

#[test]
fn refuses_an_unknown_version() {
    assert_snapshot!(refusal(r#"{"kingpost_recipe": 3, "steps": [{"splat_iname": {"iname": "i"}}]}"#));
}

/// What the form is lowered with stands in the file, whose version says so, and after a refusal.
#[test]
fn what_the_form_is_lowered_with_is_saved() {
    let lowering =
        vec![Lowering::new("rules", Some("default".into())), Lowering::new("symmetric_directions", None)];
    let recipe =
        Recipe { lowering: lowering.clone(), ..Recipe::default().then(Tag::new("j", AxisTag::Unrolled)) };
    let json = recipe.to_json().unwrap();
    assert_snapshot!(json);
    assert_eq!(steps().recipe(&json).unwrap(), recipe);
    assert_eq!(
        recipe.to_string(),
        "lowering rules(default)\nlowering symmetric_directions\n1. tag `j` unroll\n"
    );
    let text = schedule::print(&recipe);
    assert_eq!(text, "lowering rules(default)\nlowering symmetric_directions\ntag(j, tag: unroll)\n");
    let script = steps().script(&text).unwrap();
    assert_eq!(script.lowering(), lowering);
    let kernel = kingpost_ir::text::parse(SCALE).unwrap();
    let [of_recipe, of_script] =
        [recipe.apply(&kernel).unwrap_err().to_string(), script.apply(&kernel).unwrap_err().to_string()];
    let says = "; the recipe starts from a form that is lowered with `rules(default)`, `symmetric_directions`: \
                give the form, and not the text of its kernel";
    assert!(of_recipe.ends_with(says) && of_script.ends_with(says), "{of_recipe}\n{of_script}");
    assert_style(&of_recipe);
    // the start is that of the first step
    let steps = Recipe::default().then(Tag::new("k", AxisTag::Unrolled));
    assert_eq!(recipe.clone().followed_by(steps.clone()).lowering, lowering);
    assert_eq!(Recipe::default().followed_by(recipe.clone()).lowering, lowering);
    assert_eq!(steps.followed_by(recipe).lowering, []);
}

#[test]
fn refuses_what_no_form_is_lowered_with() {
    assert_snapshot!(refusal(r#"{"kingpost_recipe": 2, "lowering": ["rules of mine"], "steps": []}"#));
    let text = |text: &str| steps().script(text).unwrap_err().to_string();
    assert_snapshot!(text("lowering rules of mine\n"));
    assert_snapshot!(text("unroll_iname(j)\nlowering point_orbits\n"));
}

#[test]
fn refuses_two_versions() {
    assert_snapshot!(refusal(r#"{"kingpost_recipe": 1, "kingpost_recipe": 1, "steps": []}"#));
}

#[test]
fn refuses_an_object_without_steps() {
    assert_snapshot!(refusal(r#"{"kingpost_recipe": 1}"#));
}

#[test]
fn refuses_an_unknown_key() {
    assert_snapshot!(refusal(r#"{"kingpost_recipe": 1, "stages": []}"#));
}

fn refusal(json: &str) -> String {
    let message = steps().recipe(json).unwrap_err().to_string();
    assert_style(&message);
    message
}

#[test]
fn refuses_an_unknown_step() {
    let message = refusal(r#"{"steps": [{"splt_iname": {"iname": "i", "factor": 4}}]}"#);
    let found =
        "not a recipe: there is no step `splt_iname`; did you mean `split_iname`? at line 1 column 24; ";
    assert!(message.starts_with(found), "{message}");
}

/// Layouts are read with the recipe, in whatever way their text is written.
#[test]
fn layouts_are_read_with_the_recipe() {
    let json =
        |layout: &str| format!(r#"{{"steps": [{{"change_layout": {{"var": "x", "layout": "{layout}"}}}}]}}"#);
    let read = |layout: &str| steps().recipe(&json(layout)).unwrap();
    let step = |layout: &str| Recipe::default().then(ChangeLayout::new("x", layout.parse().unwrap()));
    assert_eq!(read(""), step(""));
    assert_eq!(read(" strides(1,n)  vector( 0 )"), step("strides(1, n) vector(0)"));
    assert!(read("strides(1,n)").to_json().unwrap().contains(r#""layout": "strides(1, n)""#));
    let needed = "write `strides(…)` with one stride for each axis, `order(…)` with the outermost axis first, \
                  `vector(axis)`, or `swizzle(axis ^= other)`";
    for (layout, word) in [("row-major", "row"), ("local", "local"), ("storage(b)", "storage")] {
        let message = refusal(&json(layout));
        let start =
            format!("not a recipe: `{layout}` is no layout: `{word}` is no part of a layout; {needed}");
        assert!(message.starts_with(&start), "{message}");
    }
}

#[test]
fn refuses_an_unknown_argument() {
    assert_snapshot!(refusal(r#"{"steps": [{"split_iname": {"iname": "i", "factor": 4, "outr": "o"}}]}"#));
}

#[test]
fn refuses_a_missing_argument() {
    assert_snapshot!(refusal(r#"{"steps": [{"split_iname": {"iname": "i"}}]}"#));
}

#[test]
fn refuses_an_argument_of_another_type() {
    assert_snapshot!(refusal(r#"{"steps": [{"split_iname": {"iname": "i", "factor": "four"}}]}"#));
}

#[test]
fn refuses_an_unknown_tag() {
    assert_snapshot!(refusal(r#"{"steps": [{"tag_iname": {"iname": "i", "tag": "g.3"}}]}"#));
}

#[test]
fn refuses_an_unknown_tag_of_several_loops() {
    assert_snapshot!(refusal(r#"{"steps": [{"tag_inames": {"inames": ["c", "d"], "tag": "l.3"}}]}"#));
}

#[test]
fn refuses_an_unknown_tag_that_could_be_absent() {
    assert_snapshot!(refusal(r#"{"steps": [{"reduce_in_tree": {"iname": "i", "tag": "l"}}]}"#));
}

#[test]
fn refuses_an_unknown_address_space() {
    assert_snapshot!(refusal(r#"{"steps": [{"set_address_space": {"var": "t", "space": "shared"}}]}"#));
}

/// The schema of an argument that has a name for each value lists the names.
#[test]
fn schemas_list_the_values() {
    let values = |step: &str, field: &str| {
        let info = steps().row(step).unwrap();
        let schema = serde_json::to_value((info.schema)()).unwrap();
        schema["properties"][field]["enum"].to_string()
    };
    assert_eq!(
        values("tag", "tag"),
        r#"["sequential","unroll","nounroll","vector","g.0","g.1","g.2","l.0","l.1","l.2","launch"]"#
    );
    assert_eq!(values("reduce_in_tree", "tag"), r#"["l.0","l.1","l.2"]"#);
    assert_eq!(
        values("set_address_space", "space"),
        r#"["global","constant","literal","local","subgroup","private"]"#
    );
    assert_eq!(values("prefetch_array", "space"), r#"["global","local","private"]"#);
}

#[test]
fn refuses_what_is_no_json() {
    assert_snapshot!(refusal("split i by 4"));
}

#[test]
fn failing_step_is_named() {
    let recipe = Recipe::default()
        .then(SplitIname::new("i", 4))
        .then(Tag::new("i_o", AxisTag::Group(0)))
        .then(Tag::new("i_i", AxisTag::Group(0)))
        .then(Tag::new("i_i", AxisTag::Local(0)));
    let error = recipe.apply(&kernel(SCALE)).unwrap_err();
    assert_style(&error.to_string());
    assert_eq!((error.number, error.total), (3, 4));
    assert_eq!(*error.step, Step::from(Tag::new("i_i", AxisTag::Group(0))));
    assert_snapshot!(format!("{error}\n\n{}", error.kernel));
}

#[test]
fn trace_shows_the_kernel_after_each_step() {
    let recipe = Recipe::default()
        .then(SplitIname::new("i", 4))
        .then(Tag::new("i_o", AxisTag::Group(0)))
        .then(Assume::at_least("n", 1));
    let trace = recipe.trace(&kernel(SCALE)).unwrap();
    let shown: Vec<_> = trace.iter().map(|(step, kernel)| format!("=== {step}\n\n{kernel}")).collect();
    assert_snapshot!(shown.join("\n"));
    assert_eq!(recipe.apply(&kernel(SCALE)).unwrap(), trace[2].1);
}

#[test]
fn empty_recipe_changes_nothing() {
    assert_eq!(Recipe::default().apply(&kernel(SCALE)).unwrap(), kernel(SCALE));
}

#[test]
fn table_of_primitives() {
    let rows = steps().rows().map(|p| format!("{}: {} | {}\n", p.name, p.summary, proved(p)));
    assert_snapshot!(rows.collect::<String>());
}

/// Each primitive has a file and a folder of facts of its name, and there are no others but the
/// corpus.
#[test]
fn every_primitive_has_its_file_and_its_facts() {
    let expected: BTreeSet<_> = steps().rows().map(|p| p.name.to_owned()).collect();
    let stems = |folder: &str| -> BTreeSet<_> {
        let entries = std::fs::read_dir(format!("{}/{folder}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let paths = entries.map(|e| e.unwrap().path());
        paths.map(|p| p.file_stem().unwrap().to_string_lossy().into_owned()).collect()
    };
    let mut files = stems("../transforms/src/primitives");
    files.extend(stems("../algebra/src/primitives"));
    let mut folders = stems("facts");
    assert!(files.remove("mod") && folders.remove("corpus"));
    assert_eq!(files, expected);
    assert_eq!(folders, expected);
}

fn name() -> impl Strategy<Value = String> {
    proptest::sample::select(vec!["i", "cell", "j_o", "§ \"quoted\"", "", "for"]).prop_map(str::to_owned)
}

fn tag() -> impl Strategy<Value = AxisTag> {
    proptest::sample::select(AxisTag::ALL.to_vec())
}

fn space() -> impl Strategy<Value = AddressSpace> {
    proptest::sample::select(AddressSpace::ALL.to_vec())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (name(), any::<i64>(), any::<Option<bool>>(), name()).prop_map(|(i, f, named, other)| {
            let outer = named.map(|_| other);
            SplitIname { outer, ..SplitIname::new(i, f) }.into()
        }),
        (name(), name()).prop_map(|(a, b)| InterchangeInames::new(a, b).into()),
        (name(), tag()).prop_map(|(a, b)| Tag::new(a, b).into()),
        name().prop_map(|i| Tag::new(i, AxisTag::Unrolled).into()),
        (name(), any::<i64>()).prop_map(|(p, v)| FixParameter::new(p, v).into()),
        (name(), any::<i64>()).prop_map(|(p, v)| Assume::at_most(p, v).into()),
        (name(), any::<i64>()).prop_map(|(p, v)| Assume::multiple_of(p, v).into()),
        name().prop_map(|a| Assume::injective(a).into()),
        name().prop_map(|i| MakeAtomic::insn(i).into()),
        (name(), space()).prop_map(|(var, space)| SetAddressSpace { var, space }.into()),
    ]
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn json_reads_back(steps in proptest::collection::vec(step(), 0..6)) {
        let recipe = Recipe::new(steps);
        prop_assert_eq!(kingpost_primitives::steps().recipe(&recipe.to_json()?)?, recipe);
    }

    /// Whatever the arguments, a step is applied or refused with a message.
    #[test]
    fn no_step_panics(step in step()) {
        if let Err(error) = Recipe::default().then(step).apply(&kernel(SCALE)) {
            assert_style(&error.to_string());
        }
    }
}

/// The arguments of a step in the order in which a schedule takes them.
#[test]
fn arguments_have_the_order_of_their_declaration() {
    let row = |name| steps().row(name).unwrap();
    assert_eq!(row("split_iname").arguments(), ["iname", "factor", "outer", "inner", "tail"]);
    assert!(!row("split_iname").takes_one_of() && row("assume").takes_one_of());
    for row in steps().rows() {
        let takes_none = matches!(row.name, "remove_unused_vars" | "use_double_single");
        assert_eq!(row.arguments().is_empty(), takes_none, "{}", row.name);
    }
}
