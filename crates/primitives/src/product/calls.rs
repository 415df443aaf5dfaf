//! What runs meanwhile, and what has instructions of its own: tiles that are copied ahead, parts that are
//! read ahead, products by matrix instructions.

use super::ahead::cut_terms;
use super::factors::{Copy, Factor, Parts};
use super::nest::{Joined, Nests, statements};
use super::places::{Applied, COPIED, Places};
use kingpost_ir::ScalarType;
use kingpost_steps::schedule::Schedule;
use kingpost_transforms::primitives::{
    DeclareCallee, ExpandArray, LaunchHint, MoveInsns, PipelineLoop, ReplaceWithIntrinsic, SeparateArray,
    WriteOut,
};

/// The matrix instruction in double precision, whose operands are fragments.
const MATRIX: &str = "mma_m16n8k4_f64_registers";

/// Loops of an instance of it: work-items, rows, columns and terms.
const OF_MATRIX: usize = 4;

/// Lets copies and reads run ahead, and makes calls of what is an instruction.
pub(super) fn finish(
    s: &mut Schedule,
    places: &Places,
    (nests, joined): (&Nests, &Joined),
    factors: &[Factor],
    copies: &[Copy],
    parts: &Parts,
) -> Applied<()> {
    let mut first = Vec::new();
    let mut products = Vec::new();
    let mut ahead = None;
    if places.by_matrix {
        (first, products) = read_ahead(s, nests, parts)?;
    } else if places.reads_ahead() {
        let tiles: Vec<(&Factor, &Copy)> = factors.iter().zip(copies).collect();
        ahead = Some(cut_terms(s, nests, joined.of_products(), places, parts, &tiles)?);
    }
    if places.buffers > 1 {
        let tiles = factors.iter().map(|factor| &factor.tile);
        s.make(PipelineLoop::new(&nests.tiles, tiles.clone()).with_buffers(places.buffers))?;
        if places.by_matrix {
            // the first parts of the next tile are read after the last use of those before
            s.make(PipelineLoop::new(&nests.tiles, first).with_buffers(1))?;
            // copies after the first reads, in two groups, so that products wait for neither
            for (copy, product) in copies.iter().zip(products.iter().chain(products.last())) {
                s.make(MoveInsns::before(copy.turns.first(), product))?;
            }
        }
        if let Some(ahead) = ahead {
            ahead.run(s, nests)?;
        }
        for (factor, copy) in factors.iter().zip(copies) {
            copy_asynchronously(s, places.ty, &factor.tile, copy)?;
        }
    }
    if let Some(groups) = places.resident_groups() {
        s.make(LaunchHint::resident_groups(groups))?;
    }
    if places.by_matrix {
        declare(s, MATRIX)?;
        call(s, MATRIX, &nests.sum.held, true, OF_MATRIX)?;
    }
    Ok(())
}

/// Writes out the loop over terms, and reads what the next ones multiply before these are multiplied: returns
/// the parts of the first terms, and the products.
fn read_ahead(s: &mut Schedule, nests: &Nests, parts: &Parts) -> Applied<(Vec<String>, Vec<String>)> {
    for part in &parts.arrays {
        s.make(ExpandArray::new(part, [&nests.terms]))?;
    }
    s.make(WriteOut::new(&nests.terms))?;
    let mut first = Vec::new();
    let mut reads = Vec::new();
    for part in &parts.arrays {
        let made = s.make(SeparateArray::new(part, 0))?;
        let arrays: Vec<String> = made.iter().map(|array| array.name().to_owned()).collect();
        first.extend(arrays.first().cloned());
        for array in &arrays {
            let reader = statements(s.kernel(), &nests.tiles, array).into_iter().next();
            let reader = s.expected(reader, "statement that reads a part")?;
            if !reads.contains(&reader) {
                reads.push(reader);
            }
        }
    }
    let products = statements(s.kernel(), &nests.tiles, &nests.sum.held);
    for (read, product) in reads.iter().skip(1).zip(&products) {
        s.make(MoveInsns::before([read], product))?;
    }
    Ok((first, products))
}

/// Makes a call of each instruction that writes an array, an update or not, with some loops around it.
pub(super) fn call(s: &mut Schedule, callee: &str, array: &str, updates: bool, depth: usize) -> Applied<()> {
    let kernel = s.kernel();
    let var = kernel.var(array);
    let mut found = Vec::new();
    for (insn, loops) in kernel.schedule() {
        let written = &kernel.insns[insn];
        if Some(written.lhs.var) != var || written.update_op().is_some() != updates {
            continue;
        }
        let outermost = loops.len().checked_sub(depth).and_then(|at| loops.get(at));
        found.push(outermost.map_or(written.name.clone(), |l| kernel.inames[*l].name.clone()));
    }
    for statement in found {
        s.make(ReplaceWithIntrinsic::new([statement], callee))?;
    }
    Ok(())
}

/// Makes the copies of a tile asynchronous, where memory is aligned for it.
fn copy_asynchronously(s: &mut Schedule, ty: ScalarType, tile: &str, copy: &Copy) -> Applied<()> {
    let count = COPIED / ty.bytes() as i64;
    let callee = match copy.vector {
        Some(_) => format!("copy_async_{ty}x{count}"),
        None => format!("copy_async_{ty}"),
    };
    declare(s, &callee)?;
    call(s, &callee, tile, false, usize::from(copy.vector.is_some()))
}

pub(super) fn declare(s: &mut Schedule, callee: &str) -> Applied<()> {
    if s.kernel().callee(callee).is_none() {
        s.make(DeclareCallee::new(callee))?;
    }
    Ok(())
}
