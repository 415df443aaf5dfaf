//! Arguments of the primitives: of each one a step that has a chance on the kernel at hand.

use crate::facts::*;
use purlin::interp::{Memory, Value};
use purlin::ir::{AddressSpace, AxisTag, Direction, Kernel, TableData, VarKind, WriteOp};
use purlin::transforms::primitives::*;
use purlin::transforms::{Selection, Step, Transform, primitives};

/// Primitives that make room for others, or seldom find a chance, are drawn more often than the rest.
const OFTEN: [&str; 25] = [
    "AliasStorage",
    "EliminateCommonSubexpressions",
    "SplitIname",
    "TagIname",
    "TagIname",
    "InterchangeInames",
    "PrefetchArray",
    "FuseLoops",
    "SetAddressSpace",
    "MakeAtomic",
    "RealiseReduction",
    "RealiseScan",
    "RealiseScan",
    "ParalleliseScan",
    "DeclareCallee",
    "ReplaceWithIntrinsic",
    "ReduceInTree",
    "SeparateArray",
    "SinkAccumulation",
    "SinkAccumulation",
    "HoistInsn",
    "PipelineLoop",
    "VectoriseIname",
    "PrecomputeRule",
    "ExpandRule",
];

/// Callees that many statements are calls of, with and without code for targets.
const CALLEES: [&str; 3] = [
    "callee store\n  arg a: f64 in\n  arg c: f64 inout\n\n  s: c = a\n  code c (\"{c} = {a};\")\n  \
     code opencl (\"{{\" \"    double stored = {a};\" \"    {c} = stored;\" \"}}\")\n",
    "callee add\n  arg a: f64 in\n  arg c: f64 inout\n\n  s: c += a\n  code c (\"{c} = {c} + {a};\")\n  \
     code opencl (\"{c} += {a};\")\n",
    "callee fill\n  param n: i64\n  arg x: f64[n] in\n  arg y: f64[n] inout\n\n  for i in 0..n\n    \
     s: y[i] = 0.5*x[i]\n",
];

/// A step, chosen by `bytes`; none where the kernel has nothing that the primitive could be tried on.
pub fn step(kernel: &Kernel, memory: &Memory, bytes: &[u8]) -> Option<Step> {
    let mut picks = Picks::new(bytes);
    let names: Vec<&str> = primitives().iter().map(|p| p.name).chain(OFTEN).collect();
    arguments(names[picks.below(names.len())], kernel, memory, &mut picks)
}

/// A step of the primitive of this name.
fn arguments(name: &str, kernel: &Kernel, memory: &Memory, p: &mut Picks<'_>) -> Option<Step> {
    Some(match name {
        "AliasStorage" => {
            let all = temporaries(kernel, 1);
            let apart: Vec<_> = one_after_the_other(kernel)
                .into_iter()
                .map(|(first, second)| AliasStorage::new([first, second], "one"))
                .collect();
            if apart.is_empty() || p.one_in(4) {
                AliasStorage::new([p.of(&all)?, p.of(&all)?], p.among(["one", "two"])).into()
            } else {
                possible(kernel, apart, p)?.into()
            }
        }
        "AssignToRule" => AssignToRule::new(p.of(&temporaries(kernel, 0))?).into(),
        "Assume" => match p.below(3) {
            0 => Assume::at_most(p.among(["n", "m"]), p.between(0, 15)).into(),
            1 => Assume::at_least(p.among(["n", "m"]), p.between(0, 3)).into(),
            _ => Assume::injective(p.among(["map", "permutation", "count"])).into(),
        },
        "BufferWrites" => buffer_writes(kernel, p)?,
        "ChangeLayout" => {
            let var = p.of(&arrays(kernel, 1))?;
            let n = axes(kernel, &var);
            // extents of samples are small
            let strides: Vec<_> = (0..n).map(|k| 16_i64.pow(k).to_string()).collect();
            let layout = match p.below(4) {
                0 => format!("vector({})", p.below(n as usize)),
                1 => String::new(),
                2 => format!("strides({})", strides.join(", ")),
                _ => format!("strides({})", strides.into_iter().rev().collect::<Vec<_>>().join(", ")),
            };
            ChangeLayout::new(var, layout).into()
        }
        "ContractArray" => {
            let var = p.of(&made(kernel))?;
            let axis = p.below(axes(kernel, &var) as usize) as u32;
            ContractArray::new(var, axis).into()
        }
        "ConvertToUpdate" => ConvertToUpdate::insn(
            p.of(&insns(kernel, |i| i.op == WriteOp::Assign && !i.lhs.index.is_empty()))?,
        )
        .into(),
        "DeclareCallee" => DeclareCallee::new(p.among(CALLEES)).into(),
        "DistributeLoop" => {
            let mut several = bodies(kernel);
            several.retain(|(of, names)| of.is_some() && names.len() > 1);
            let (of, names) = p.of(&several)?;
            DistributeLoop::new(of?, [p.of(&names[1..])?]).into()
        }
        "EliminateCommonSubexpressions" => EliminateCommonSubexpressions::default().into(),
        "DuplicateIname" => {
            let mut several = bodies(kernel);
            several.retain(|(of, names)| of.is_some() && names.len() > 1);
            let (of, _) = p.of(&several)?;
            let insn = Selection::Insn(p.of(&insns(kernel, |_| true))?);
            let step = DuplicateIname::new(of?, insn);
            if p.one_in(2) { step.in_front() } else { step }.into()
        }
        "EmbedTable" => EmbedTable::new(p.of(&tables(kernel))?).into(),
        "ExpandArray" => {
            let var = p.of(&temporaries(kernel, 0))?;
            let mut loops = loops_around(kernel, &var);
            let keep = 1 + p.below(loops.len());
            ExpandArray::new(var, loops.split_off(loops.len().saturating_sub(keep))).into()
        }
        "ExpandRule" => ExpandRule::new(p.of(&rules(kernel))?).into(),
        "ExtractRule" => {
            let template = p.among(["u[p]", "sin(p)", "p*0.5", "p + q", "a[p, q]", "x[p]", "p*q", "cos(p)"]);
            let params = if template.contains('q') { vec!["p", "q"] } else { vec!["p"] };
            ExtractRule::new(kernel.fresh_name("r"), params, template).into()
        }
        "FixArgument" => {
            let inputs = vars(kernel, |v| v.kind == VarKind::Argument(Direction::In));
            let var = p.of(&inputs)?;
            let values = match memory.get(&var)? {
                Value::F64(v) => TableData::real(v.iter().copied()),
                Value::F32(v) => TableData::real(v.iter().map(|x| f64::from(*x))),
                Value::I32(v) => TableData::int(v.iter().map(|x| i64::from(*x))),
                Value::I64(v) => TableData::int(v.iter().copied()),
            };
            FixArgument { var, values }.into()
        }
        "FactorUpdate" => {
            let update = p.of(&insns(kernel, |i| i.op != WriteOp::Assign))?;
            let around = loops_of(kernel, &update);
            let mut over = vec![p.of(&around)?];
            over.extend(p.of(&around).filter(|l| *l != over[0] && p.one_in(3)));
            FactorUpdate::new(update, over).into_temporary(kernel.fresh_name("part")).into()
        }
        "FixParameter" => {
            let param = p.of(&vars(kernel, |v| v.kind == VarKind::Param))?;
            let value = memory.get_param(&param)?;
            FixParameter::new(param, value).into()
        }
        "FuseLoops" => {
            let (first, second) = p.of(&neighbours(kernel))?;
            FuseLoops::new(first, second).into()
        }
        "HoistInsn" => {
            let all = insns(kernel, |i| i.op == WriteOp::Assign).into_iter().map(HoistInsn::new).collect();
            possible(kernel, all, p)?.into()
        }
        "InlineCall" => {
            possible(kernel, callees(kernel).into_iter().map(InlineCall::new).collect(), p)?.into()
        }
        "InterchangeInames" => {
            let (outer, inner) = p.of(&nested(kernel))?;
            InterchangeInames::new(outer, inner).into()
        }
        "JoinArrayAxes" => {
            let var = p.of(&temporaries(kernel, 2))?;
            let axis = p.below(axes(kernel, &var) as usize - 1) as u32;
            JoinArrayAxes::new(var, axis).into()
        }
        "JoinArrays" => {
            let (first, second) = p.of(&alike(kernel))?;
            let axis = p.below(axes(kernel, &first) as usize + 1) as u32;
            JoinArrays::new([first, second], kernel.fresh_name("joint"), axis).into()
        }
        "JoinInames" => {
            let (outer, inner) = p.of(&nested(kernel))?;
            JoinInames::new(outer, inner).into()
        }
        "MakeAtomic" => MakeAtomic::insn(p.of(&insns(kernel, |i| i.op != WriteOp::Assign))?).into(),
        "MapInames" => {
            let (outer, inner) = p.of(&nested(kernel))?;
            let maps =
                [[1, 1, 0, 1], [0, 1, 1, 0], [-1, 0, 0, 1], [2, 1, 1, 1], [1, 0, -3, 1], [1, 0, 0, -1]];
            let [a, b, c, d] = p.among(maps);
            let offset = [p.between(-2, 2), p.between(0, 1)];
            MapInames::new([outer, inner], [vec![a, b], vec![c, d]]).shifted(offset).into()
        }
        "MoveInsns" => move_insns(kernel, p)?,
        "OutlineInsns" => OutlineInsns::new(some_statements(kernel, p)?, kernel.fresh_name("part")).into(),
        "PackArrays" => {
            let all = temporaries(kernel, 0);
            PackArrays::new([p.of(&all)?, p.of(&all)?], kernel.fresh_name("pool")).into()
        }
        "PadArray" => {
            let var = p.of(&arrays(kernel, 2))?;
            PadArray::new(&var, p.below(axes(kernel, &var) as usize) as u32, p.between(0, 3)).into()
        }
        "ParalleliseScan" => {
            let scalar = |i: &purlin::ir::Insn| i.op != WriteOp::Assign && i.lhs.index.is_empty();
            let mut all = Vec::new();
            for update in insns(kernel, scalar) {
                all.extend(loops_of(kernel, &update).into_iter().map(|l| ParalleliseScan::new(l, &update)));
            }
            let step = possible(kernel, all, p)?.into_temporary(kernel.fresh_name("scanned"));
            if p.one_in(2) { step } else { step.by_work_items("l.0") }.into()
        }
        "PassTable" => PassTable::new(p.of(&tables(kernel))?).into(),
        "PeelIname" => {
            let (iname, count) = (p.of(&loops(kernel))?, p.between(0, 3));
            if p.one_in(2) { PeelIname::last(iname, count) } else { PeelIname::first(iname, count) }.into()
        }
        "PipelineLoop" => {
            let (iname, var) = p.of(&filled(kernel))?;
            PipelineLoop::new(iname, [var]).with_buffers(p.between(2, 3)).into()
        }
        "PrecomputeRule" => {
            let space = p.among([AddressSpace::Local, AddressSpace::Private]);
            let mut all = Vec::new();
            for rule in rules(kernel) {
                all.extend(loops(kernel).into_iter().map(|l| PrecomputeRule::new(&rule, l, space)));
            }
            let step = possible(kernel, all, p)?.into_temporary(kernel.fresh_name("values"));
            let step = if p.one_in(3) { step.by_work_items([3]) } else { step };
            if p.one_in(2) { step.exactly() } else { step }.into()
        }
        "PrefetchArray" => prefetch(kernel, p)?,
        "RealiseReduction" => RealiseReduction::new(p.of(&reductions(kernel))?).into(),
        "RealiseScan" => {
            let all = insns(kernel, |i| i.predicate.is_none()).into_iter().map(RealiseScan::new).collect();
            possible(kernel, all, p)?.into_temporary(kernel.fresh_name("total")).into()
        }
        "ReduceInTree" => {
            let mut single = bodies(kernel);
            single.retain(|(_, names)| names.len() == 1 && kernel.insn(&names[0]).is_some());
            let all = single.into_iter().filter_map(|(of, _)| Some(ReduceInTree::new(of?))).collect();
            let step = possible(kernel, all, p)?.into_temporary(kernel.fresh_name("tree"));
            match p.below(4) {
                0 => step,
                1 => step.by_work_items("l.0").by_shuffles(),
                _ => step.by_work_items("l.0"),
            }
            .into()
        }
        "RemoveUnusedVars" => RemoveUnusedVars::default().into(),
        "Rename" => rename(kernel, p)?,
        "ReplaceWithIntrinsic" => {
            let mut statements: Vec<_> =
                insns(kernel, |i| i.callee.is_none()).into_iter().map(|i| vec![i]).collect();
            statements.extend(some_statements(kernel, p));
            let calls = |callee: &String| {
                let call = |s: &Vec<String>| ReplaceWithIntrinsic::new(s.clone(), callee.clone());
                statements.iter().map(call).collect::<Vec<_>>()
            };
            possible(kernel, callees(kernel).iter().flat_map(calls).collect(), p)?.into()
        }
        "ReverseIname" => ReverseIname::new(p.of(&inames(kernel))?).into(),
        "RollInsns" => {
            let runs = bodies(kernel)
                .into_iter()
                .flat_map(|(_, names)| names.windows(2).map(<[String]>::to_vec).collect::<Vec<_>>());
            let are_insns = |names: &Vec<String>| names.iter().all(|n| kernel.insn(n).is_some());
            let runs: Vec<Vec<String>> = runs.filter(are_insns).collect();
            RollInsns::new(p.of(&runs)?, kernel.fresh_name("rolled")).into()
        }
        "SeparateArray" => {
            let mut all = Vec::new();
            for var in temporaries(kernel, 1) {
                all.extend((0..axes(kernel, &var)).map(|axis| SeparateArray::new(&var, axis)));
            }
            possible(kernel, all, p)?.into()
        }
        "SetAddressSpace" => {
            let spaces =
                [AddressSpace::Private, AddressSpace::Local, AddressSpace::Local, AddressSpace::Global];
            let space = match p.below(16) {
                7 => p.among(AddressSpace::ALL),
                9 | 11 => AddressSpace::SubGroup,
                _ => p.among(spaces),
            };
            let all = vars(kernel, |v| matches!(v.kind, VarKind::Temporary | VarKind::Table(_)));
            SetAddressSpace::new(p.of(&all)?, space).into()
        }
        "ShiftIname" => {
            let (iname, by) = (p.of(&inames(kernel))?, p.between(-2, 4));
            ShiftIname::new(iname, by).and(p.between(-1, 1), p.among(["n", "m"])).into()
        }
        "SinkAccumulation" => {
            let mut all = Vec::new();
            for var in temporaries(kernel, 0) {
                all.extend(loops(kernel).into_iter().map(|l| SinkAccumulation::new(&var, l)));
            }
            possible(kernel, all, p)?.into()
        }
        "SkewIname" => {
            let (outer, inner) = p.of(&around(kernel))?;
            SkewIname::new(inner, outer, p.between(-2, 2)).into()
        }
        "SplitAccumulation" => {
            let mut all = Vec::new();
            for var in temporaries(kernel, 0) {
                let statements = loops(kernel).into_iter().chain(insns(kernel, |_| true));
                all.extend(statements.map(|at| SplitAccumulation::new(&var, at)));
            }
            possible(kernel, all, p)?.into()
        }
        "SplitArrayAxis" => {
            let var = p.of(&temporaries(kernel, 1))?;
            SplitArrayAxis::new(&var, p.below(axes(kernel, &var) as usize) as u32, p.between(0, 4)).into()
        }
        "SplitIname" => {
            let tail = p.among([Tail::Guard, Tail::Guard, Tail::Peel, Tail::Exact]);
            SplitIname::new(p.of(&inames(kernel))?, p.between(0, 5)).with_tail(tail).into()
        }
        "TagIname" => {
            let tags = AxisTag::ALL.iter().filter(|t| !matches!(t, AxisTag::Unrolled));
            let mut tags: Vec<_> = tags.map(AxisTag::to_string).collect();
            tags.extend(["g.0", "l.0", "l.0", "l.0"].map(str::to_owned));
            let iname = p.of(&loops(kernel))?;
            TagIname::new(iname, p.of(&tags)?).into()
        }
        "StageValue" => {
            StageValue::new(p.of(&insns(kernel, |i| i.predicate.is_none()))?, kernel.fresh_name("staged"))
                .into()
        }
        "TagInames" => {
            let all = loops(kernel);
            TagInames::new([p.of(&all)?, p.of(&all)?], p.among(["l.0", "g.0", "l.1"])).into()
        }
        "TransposeArrayAxes" => {
            let var = p.of(&arrays(kernel, 2))?;
            let (n, by) = (axes(kernel, &var), p.below(3) as u32);
            TransposeArrayAxes::new(var, (0..n).map(|a| (a + by) % n)).into()
        }
        "UnrollIname" => UnrollIname::new(p.of(&inames(kernel))?).into(),
        "VectoriseIname" => VectoriseIname::new(p.of(&loops(kernel))?).into(),
        other => panic!("no arguments are drawn for `{other}`; add it to tests/random_recipes/draw.rs"),
    })
}

fn buffer_writes(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Step> {
    let written = vars(kernel, |v| {
        let of = |i: &purlin::ir::Insn| kernel.vars[i.lhs.var].name == v.name;
        kernel.insns.values().any(of)
    });
    let var = p.of(&written)?;
    let space = p.among([AddressSpace::Private, AddressSpace::Local, AddressSpace::Private]);
    let step = match p.of(&loops_around(kernel, &var)) {
        Some(at) => BufferWrites::new(var, at, space),
        None => BufferWrites::whole(var, space),
    };
    let step = step.into_temporary(kernel.fresh_name("buffer"));
    Some(if p.one_in(4) { step.by_work_items([3]) } else { step }.into())
}

/// One of the steps that would be accepted, or any where there is none.
fn possible<T: Transform + Clone>(kernel: &Kernel, all: Vec<T>, p: &mut Picks<'_>) -> Option<T> {
    let accepted: Vec<_> = all.iter().filter(|step| step.apply(kernel).is_ok()).cloned().collect();
    p.of(if accepted.is_empty() { &all } else { &accepted })
}

fn move_insns(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Step> {
    let mut several = bodies(kernel);
    several.retain(|(_, names)| names.len() > 1);
    let (_, names) = p.of(&several)?;
    let moved = p.below(names.len());
    let target = (moved + 1 + p.below(names.len() - 1)) % names.len();
    let (moved, target) = ([names[moved].clone()], names[target].clone());
    Some(if p.one_in(2) { MoveInsns::after(moved, target) } else { MoveInsns::before(moved, target) }.into())
}

fn prefetch(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Step> {
    let at = p.of(&loops(kernel))?;
    let var = p.of(&read_inside(kernel, &at))?;
    let spaces = [AddressSpace::Local, AddressSpace::Private, AddressSpace::Local];
    let space = if p.below(16) == 7 { AddressSpace::Global } else { p.among(spaces) };
    let step = PrefetchArray::new(var, at, space).into_temporary(kernel.fresh_name("tile"));
    let items = match p.below(4) {
        0 => vec![3],
        1 => vec![2, 2],
        _ => vec![],
    };
    let step = step.by_work_items(items);
    Some(if p.one_in(3) { step.exactly() } else { step }.into())
}

fn rename(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Step> {
    let to = p.among(["renamed", "other", "n", "sum", "long"]);
    Some(
        match p.below(4) {
            0 => Rename::iname(p.of(&inames(kernel))?, to),
            1 => Rename::insn(p.of(&insns(kernel, |_| true))?, to),
            // the values of a table go by its name
            2 => Rename::var(p.of(&vars(kernel, |v| !matches!(v.kind, VarKind::Table(_))))?, to),
            _ => Rename::rule(p.of(&rules(kernel))?, to),
        }
        .into(),
    )
}
