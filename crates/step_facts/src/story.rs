//! A kernel, the steps, and what becomes of it, as text; every accepted step is run before and
//! after.

use kingpost_analysis::Analysis;
use kingpost_interp::{InterpError, Memory, Run, Value, impose_symmetries, interpret};
use kingpost_ir::{Assumption, Atom, Class, Direction, Kernel, VarId, VarKind};
use kingpost_primitives::lists::{Definition, ListNames, RowOrder};
use kingpost_primitives::primitives::fix_parameter::ParamValue;
use kingpost_primitives::primitives::{FixArgument, FixParameter, PassTable};
use kingpost_primitives::runs::{FirstNumbers, RunStarts};
use kingpost_primitives::{Instances, Order, Step};
use std::collections::BTreeMap;
use std::ops::Range;

/// Sizes a story runs at: nothing, one, fewer than a block, around multiples of it.
const SIZES: [i64; 7] = [0, 1, 2, 3, 4, 7, 8];

/// The kernel of a text.
pub fn kernel(text: &str) -> Kernel {
    kingpost_ir::text::parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)))
}

/// Input, steps, and result or refusal.
pub fn story(text: &str, steps: &[Step]) -> String {
    let mut kernel = kernel(text);
    let mut story = kernel.to_string();
    for step in steps {
        story += &format!("\n=== {step}\n\n");
        match step.apply(&kernel) {
            Ok(result) => {
                check(&kernel, &result, step);
                story += &result.to_string();
                kernel = result;
            }
            Err(error) => {
                assert_style(&error.to_string());
                return story + &format!("refused: {error}\n");
            }
        }
    }
    story
}

/// Messages are in lower case and have no full stop.
pub fn assert_style(message: &str) {
    assert!(!message.ends_with('.') && !message.ends_with('\n'), "{message}");
    assert!(message.starts_with(|c: char| c.is_lowercase()), "{message}");
}

/// The result prints, parses back, and computes the same from small integers, exactly.
pub fn check(before: &Kernel, after: &Kernel, step: &Step) {
    assert_eq!(kingpost_ir::text::parse(&after.to_string()).as_ref(), Ok(after));
    if let (None, Some(outside)) = (Analysis::of(before).first_outside(), Analysis::of(after).first_outside())
    {
        panic!("{step}: {outside}\n{after}");
    }
    let mut runs = 0;
    for n in SIZES {
        let fixed = match step.get() {
            None => None,
            // that of a program with this value
            Some(FixParameter { value: ParamValue::Constant(value), .. }) if *value != n => continue,
            Some(FixParameter { param, value }) => match value.eval(|_| Some(n)) {
                Some(value) => Some((param.as_str(), value)),
                None => continue,
            },
        };
        let mut expected = memory_with(before, n, fixed);
        let mut found = memory_with(before, n, fixed);
        give_constants(before, step, &mut expected, &mut found);
        give_blocks(before, step, [&mut expected, &mut found]);
        if !give_runs(before, step, n, [&mut expected, &mut found]) {
            continue; // no run has as many numbers
        }
        let Ok(mut first) = interpret(before, &mut expected) else {
            continue; // a size the program does not allow
        };
        give_defined(before, step, &mut found);
        round_arguments(after, &mut found);
        let second = match interpret(after, &mut found) {
            Ok(run) => run,
            Err(
                InterpError::Assumption { .. }
                | InterpError::NotInjective { .. }
                | InterpError::NotSymmetric { .. },
            ) => continue,
            Err(error) => panic!("{step} at {n}: {error}\n{after}"),
        };
        if before.has_records() {
            // the program names none of those of fields
            first.instances.retain(|name, _| before.insn(name).is_some());
        }
        assert_eq!(changed_counts(step, &first, &second), [], "{step} at {n}\n{after}");
        let (expected, found) = (values(after, &expected), values(after, &found));
        runs += 1;
        let keeps = step.keeps();
        if keeps.finite_only && expected.iter().any(|(_, v)| v.to_f64().iter().any(|x| !x.is_finite())) {
            continue;
        }
        match keeps.order {
            Order::Bits => assert!(are_same(&expected, &found, true), "{step} at {n}\n{after}"),
            // sums of few small integers are exact, in whatever order
            Order::Numbers | Order::Reassociated => {
                assert!(
                    are_same(&expected, &found, false),
                    "{step} at {n}: {expected:?}, {found:?}\n{after}"
                );
            }
            // a few roundings of exponentials and of their sums
            Order::Identities => assert!(are_near(&expected, &found, 1e-12), "{step} at {n}\n{after}"),
            Order::Within(digits) => {
                let tolerance = 0.1_f64.powi(digits as i32);
                assert!(are_near(&expected, &found, tolerance), "{step} at {n}\n{after}");
            }
        }
    }
    assert!(runs > 0, "{step} ran at no size\n{before}");
}

/// What a step takes besides what the program was given.
fn give_defined(before: &Kernel, step: &Step, found: &mut Memory) {
    match step.definition(before).unwrap() {
        None => {}
        Some(Definition::Lists(lists)) => give_lists(&lists, found),
        Some(Definition::Runs(runs)) => {
            let given = found.get(&runs.map).unwrap();
            let starts = runs.compute(&given.to_i64().unwrap(), &numbers_below(&runs, found)).unwrap();
            let starts = Value::of_integers(given.ty(), &starts).unwrap();
            found.set(runs.result(), starts);
        }
        Some(Definition::Rows(order)) => {
            let [map, points] = [&order.map, &order.points].map(|name| found.get(name).unwrap().clone());
            let places = order.compute(&map.to_i64().unwrap(), &points.to_f64()).unwrap();
            for (name, copy) in &order.copies {
                let value = found.get(name).unwrap().in_order(&places);
                found.set(copy.clone(), value);
            }
        }
        Some(Definition::Blocks(blocks)) => {
            let given = found.get(&blocks.map).unwrap();
            let numbers = blocks.compute(&given.to_i64().unwrap()).unwrap();
            let numbers = Value::of_integers(given.ty(), &numbers).unwrap();
            found.set(blocks.numbers, numbers);
        }
        Some(Definition::Kernel(kernel)) => {
            interpret(&kernel, found).unwrap();
        }
    }
}

/// The entries of the input that first numbers of runs are above.
fn numbers_below(runs: &RunStarts, memory: &Memory) -> Vec<i64> {
    runs.above().map_or_else(Vec::new, |above| memory.get(above).unwrap().to_i64().unwrap())
}

/// Instructions of both programs of which another number of instances run than the step promises:
/// what it adds or removes does not count.
fn changed_counts<'r>(step: &Step, before: &'r Run, after: &'r Run) -> Vec<(&'r String, u64, u64)> {
    let both = before.instances.iter().filter_map(|(name, n)| Some((name, *n, *after.instances.get(name)?)));
    match step.instances() {
        Instances::Same => both.filter(|(_, n, m)| m != n).collect(),
        Instances::Fewer => both.filter(|(_, n, m)| m > n).collect(),
        Instances::Free => Vec::new(),
        Instances::Copied => {
            // an instruction and its copy share the instances: only the sum stays
            let same = before.instances.values().sum::<u64>() == after.instances.values().sum::<u64>();
            let changed = before.instances.iter().filter(|_| !same);
            changed.map(|(name, n)| (name, *n, *after.instances.get(name).unwrap_or(&0))).collect()
        }
    }
}

/// What a step fixes has that value before it; what it makes an argument is passed after it.
fn give_constants(before: &Kernel, step: &Step, expected: &mut Memory, found: &mut Memory) {
    let (name, data, memory) = if let Some(fix) = step.get::<FixArgument>() {
        (&fix.var, &fix.values, expected)
    } else if let Some(pass) = step.get::<PassTable>() {
        let VarKind::Table(data) = &before.vars[before.var(&pass.var).unwrap()].kind else { return };
        (&pass.var, data, found)
    } else {
        return;
    };
    let ty = before.vars[before.var(name).unwrap()].ty;
    memory.set(name.clone(), Value::of_table(ty, data));
}

/// Where a step takes runs of a map, it is given with them; false if numbers below `n` are too few.
fn give_runs(before: &Kernel, step: &Step, n: i64, memories: [&mut Memory; 2]) -> bool {
    let Some(Definition::Runs(runs)) = step.definition(before).unwrap() else { return true };
    let length = runs.length.get();
    for memory in memories {
        let given = memory.get(&runs.map).unwrap();
        let (ty, mut map) = (given.ty(), given.to_i64().unwrap());
        let rows = map.len() / runs.columns.get();
        // the last numbers, where rows have theirs alone
        let own = matches!(runs.numbers, FirstNumbers::Own(_));
        let last = n - (if own { rows * length } else { length }) as i64;
        if last < i64::from(own) {
            return false;
        }
        // after the numbers that rows have alone, where the map has some
        let map_id = before.var(&runs.map).unwrap();
        let shift = range_outside(before, map_id, memory.params()).map_or(0, |range| range.end);
        let mut above = numbers_below(&runs, memory).into_iter().map(|number| number + shift);
        for (r, row) in map.chunks_exact_mut(runs.columns.get()).enumerate() {
            if own {
                row.iter_mut().for_each(|entry| *entry %= last);
            }
            for run in row[runs.first..].chunks_exact_mut(length).take(runs.count.get()) {
                let start =
                    if own { last + (r * length) as i64 } else { above.next().unwrap_or(run[0]).min(last) };
                run.iter_mut().zip(start..).for_each(|(entry, number)| *entry = number);
            }
        }
        memory.set(runs.map.clone(), Value::of_integers(ty, &map).unwrap());
    }
    true
}

/// Where a step takes blocks of a map, the rows of each repeat its numbers by the pattern.
fn give_blocks(before: &Kernel, step: &Step, memories: [&mut Memory; 2]) {
    let (name, columns, first, pattern) = match step.definition(before).unwrap() {
        Some(Definition::Blocks(blocks)) => (blocks.map, blocks.columns, blocks.first, blocks.pattern),
        Some(Definition::Rows(RowOrder { map, columns, pattern: Some(pattern), .. })) => {
            (map, columns, 0, pattern)
        }
        _ => return,
    };
    for memory in memories {
        let given = memory.get(&name).unwrap();
        let (ty, mut map) = (given.ty(), given.to_i64().unwrap());
        let columns = columns.get();
        for block in map.chunks_exact_mut(pattern.rows().len() * columns) {
            let mut numbers = vec![None; pattern.count()];
            for (row, places) in block.chunks_exact_mut(columns).zip(pattern.rows()) {
                for (entry, place) in row[first..].iter_mut().zip(places) {
                    *entry = *numbers[*place].get_or_insert(*entry);
                }
            }
        }
        memory.set(name.clone(), Value::of_integers(ty, &map).unwrap());
    }
}

/// Arguments of another precision are given in it.
fn round_arguments(after: &Kernel, memory: &mut Memory) {
    let after = after.scalar_form();
    for var in after.vars.values().filter(|v| matches!(v.kind, VarKind::Argument(_))) {
        let Some(value) = memory.get(&var.name).filter(|value| value.ty() != var.ty) else { continue };
        let rounded = match var.ty.class() {
            Class::Real | Class::Complex => Value::of_reals(var.ty, &value.to_f64()),
            Class::Truth | Class::Exact | Class::Word | Class::Record => continue,
        };
        memory.set(var.name.clone(), rounded);
    }
}

/// The lists that a step takes, of the map that the program was given.
fn give_lists(lists: &ListNames, memory: &mut Memory) {
    let Some(given) = memory.get(&lists.map) else { panic!("{} is no map", lists.map) };
    let (map, ty) = (given.to_i64().unwrap(), given.ty());
    let values = lists.compute(&map).unwrap();
    for (name, ty, values) in values.named(lists, ty) {
        memory.set(name, Value::of_integers(ty, &values).unwrap());
    }
}

/// Whether reals differ by at most `tolerance` times the largest, and the rest not at all.
fn are_near(expected: &[(&String, &Value)], found: &[(&String, &Value)], tolerance: f64) -> bool {
    let all = expected.iter().flat_map(|(_, v)| v.to_f64());
    let scale = all.fold(1.0_f64, |s, x| s.max(x.abs()));
    let near = |(a, b): (f64, f64)| (a - b).abs() <= tolerance * scale;
    expected.len() == found.len()
        && expected.iter().zip(found).all(|((_, a), (_, b))| {
            a.to_f64().len() == b.to_f64().len() && a.to_f64().into_iter().zip(b.to_f64()).all(near)
        })
}

/// Whether all values are the same, a nan like any other; zeros of different `signs` differ, if these count.
fn are_same(expected: &[(&String, &Value)], found: &[(&String, &Value)], signs: bool) -> bool {
    let same = |(a, b): (f64, f64)| {
        let signed = signs && a.is_sign_negative() != b.is_sign_negative();
        a.is_nan() && b.is_nan() || a == b && !signed
    };
    let integers = |v: &Value| {
        let all = (0..v.len()).map(|k| v.integer(k));
        if v.ty().part().is_real() { None } else { all.collect::<Option<Vec<i64>>>() }
    };
    expected.len() == found.len()
        && expected.iter().zip(found).all(|((name, a), (other, b))| {
            let reals = a.to_f64().into_iter().zip(b.to_f64());
            name == other && a.len() == b.len() && integers(a) == integers(b) && reals.into_iter().all(same)
        })
}

/// The arguments that a kernel writes.
fn values<'m>(kernel: &Kernel, memory: &'m Memory) -> Vec<(&'m String, &'m Value)> {
    let kernel = kernel.scalar_form();
    let written = |name: &str| {
        let kind = kernel.var(name).map(|v| &kernel.vars[v].kind);
        matches!(kind, Some(VarKind::Argument(Direction::Out | Direction::InOut)))
    };
    memory.values().iter().filter(|(name, _)| written(name)).collect()
}

/// Small integers for every argument;
/// `n` for every parameter. Integer arrays hold indices below `n`.
fn memory(kernel: &Kernel, n: i64) -> Memory {
    memory_with(kernel, n, None)
}

/// The same with another value of a parameter.
fn memory_with(kernel: &Kernel, n: i64, other: Option<(&str, i64)>) -> Memory {
    let kernel = &*kernel.scalar_form();
    let mut memory = Memory::new();
    let given = |name: &str| other.filter(|(other, _)| *other == name).map_or(n, |(_, value)| value);
    let params =
        kernel.vars.iter().filter(|(id, v)| v.kind == VarKind::Param && kernel.definition(*id).is_none());
    let params = params.map(|(_, v)| (v.name.clone(), given(&v.name))).collect();
    let params = kernel.with_defined(&params).unwrap().into_owned();
    params.iter().for_each(|(name, value)| memory.set_param(name, *value));
    let of = |var: VarId| params.get(&kernel.vars[var].name).copied().unwrap();
    for (id, var) in kernel.vars.iter() {
        if !matches!(var.kind, VarKind::Argument(_)) {
            continue;
        }
        let value = |atom: &Atom| match atom {
            Atom::Var(var) => Some(of(*var)),
            Atom::Iname(_) | Atom::Floor(..) => None,
        };
        let extent = |e: &kingpost_ir::Affine| e.eval(&mut |atom| value(atom)).unwrap().max(0);
        let len = var.shape.iter().map(extent).product::<i64>();
        let injective = kernel.assumptions.contains(&Assumption::Injective(id));
        let real = |k: i64| ((k * 7 + 3) % 9 - 4) as f64;
        let index = |k: i64| if injective { len - 1 - k } else { (k * k) % n.max(1) };
        let mut value = match var.ty.class() {
            Class::Real | Class::Complex => {
                let parts = len * var.ty.parts() as i64;
                Value::of_reals(var.ty, &(0..parts).map(real).collect::<Vec<_>>())
            }
            Class::Truth | Class::Exact | Class::Word | Class::Record => {
                Value::of_bits(var.ty, &(0..len).map(index).collect::<Vec<_>>())
            }
        };
        let params = memory.params().clone();
        impose_symmetries(kernel, id, &params, &mut value);
        impose_range(kernel, id, &params, &mut value);
        memory.set(var.name.clone(), value);
    }
    memory
}

/// The range that entries of an array are assumed to be outside, where inputs are zero.
fn range_outside(kernel: &Kernel, id: VarId, params: &BTreeMap<String, i64>) -> Option<Range<i64>> {
    let value = |atom: &Atom| match atom {
        Atom::Var(v) => Some(params.get(&kernel.vars[*v].name).copied().unwrap_or(0)), // default: an input
        Atom::Iname(_) | Atom::Floor(..) => None,
    };
    kernel.assumptions.iter().find_map(|assumption| {
        let Assumption::Outside(outside) = assumption else { return None };
        let ends = [&outside.from, &outside.to].map(|end| end.eval(&mut |atom| value(atom)).unwrap());
        (outside.array == id).then_some(ends[0]..ends[1])
    })
}

/// Entries that are assumed outside a range are, and numbers that a row has alone are its own.
fn impose_range(kernel: &Kernel, id: VarId, params: &BTreeMap<String, i64>, value: &mut Value) {
    let Some(range) = range_outside(kernel, id, params) else { return };
    let own = kernel.assumptions.iter().find_map(|assumption| {
        let Assumption::Outside(outside) = assumption else { return None };
        (outside.array == id).then(|| outside.own.map(|first| (first, outside.length(kernel))))?
    });
    let columns = kernel.vars[id].shape.last().and_then(kingpost_ir::Affine::as_constant);
    let mut entries = value.to_i64().unwrap();
    for (at, entry) in entries.iter_mut().enumerate() {
        let place = own.zip(columns).map(|((first, length), columns)| {
            let (row, column) = (at as i64 / columns, at as i64 % columns);
            (column >= first).then(|| range.start + row * length + column - first)
        });
        *entry = place.flatten().unwrap_or(range.end + *entry % 2);
    }
    *value = Value::of_integers(value.ty(), &entries).unwrap();
}

/// Runs a program before and after some steps at size 4 with some values given, and compares what
/// it writes.
pub fn compare_from(text: &str, steps: &[Step], given: &[(&str, Value)]) {
    let before = kernel(text);
    let after = steps.iter().fold(before.clone(), |kernel, step| step.apply(&kernel).unwrap());
    let run = |kernel: &Kernel| {
        let mut memory = memory(&before, 4);
        given.iter().for_each(|(name, value)| memory.set(*name, value.clone()));
        interpret(kernel, &mut memory).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
        memory
    };
    let (expected, found) = (run(&before), run(&after));
    for ((name, expected), (_, found)) in values(&before, &expected).into_iter().zip(values(&before, &found))
    {
        let (e, f) = (expected.to_f64(), found.to_f64());
        let same = e.len() == f.len() && e.iter().zip(&f).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
        assert!(same, "`{name}` is {found:?}, before {expected:?}, from {given:?}\n{before}\n{after}");
    }
}

/// Whether the last step of a fact is refused.
pub fn is_refusal(fact: &kingpost_facts::Fact) -> bool {
    fact.questions.last().is_some_and(|q| q.answer.text.starts_with("refused"))
}
