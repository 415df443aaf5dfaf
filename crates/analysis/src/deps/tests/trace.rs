//! What a run does, instance by instance: the truth that relations are compared with.

use kingpost_interp::{Memory, Observer, interpret_with};
use kingpost_ir::expr::UpdateOp;
use kingpost_ir::ids::{Id, InameId, InsnId, VarId};
use kingpost_ir::kernel::Kernel;
use std::collections::{BTreeMap, HashMap};

/// An element: variable and row-major position.
pub type Element = (VarId, usize);

/// An instance that ran; its predicate may have been false.
#[derive(Clone, Debug)]
pub struct Event {
    pub insn: InsnId,
    pub point: Vec<i64>,
    /// Elements read, with the instance that wrote them last. Bounds of the loops around count as
    /// read here, with what was written last when the loop was entered.
    pub reads: Vec<(Element, Option<usize>)>,
    pub write: Option<Element>,
}

/// How an instance touches an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    Read,
    Assign,
    Update(UpdateOp),
}

impl Touch {
    /// Whether the order of the two matters.
    pub fn conflicts(self, other: Self) -> bool {
        match (self, other) {
            (Self::Read, Self::Read) => false,
            (Self::Update(a), Self::Update(b)) => a != b,
            (Self::Read | Self::Assign | Self::Update(_), Self::Read | Self::Assign | Self::Update(_)) => {
                true
            }
        }
    }
}

/// A run.
pub struct Trace {
    pub events: Vec<Event>,
    /// Accesses of each element in order of time; of an instance the reads come first.
    pub touches: BTreeMap<Element, Vec<(usize, Touch)>>,
    numbers: HashMap<(InsnId, Vec<i64>), usize>,
}

impl Trace {
    /// Runs the kernel.
    pub fn of(kernel: &Kernel, memory: &Memory) -> Self {
        let kernel = kernel.with_rules_expanded();
        let mut loops: Vec<Vec<InameId>> = vec![Vec::new(); kernel.insns.len()];
        for (insn, around) in kernel.schedule() {
            loops[insn.index()] = around;
        }
        let mut recorder = Recorder {
            loops,
            events: Vec::new(),
            last: HashMap::new(),
            entries: HashMap::new(),
            entering: None,
        };
        interpret_with(&kernel, &mut memory.clone(), &mut recorder, Some(1_000_000)).expect("runs");
        let mut events = recorder.events;
        for idle in events.iter_mut().filter(|e| e.write.is_none()) {
            idle.reads.clear(); // its predicate was false: what it read has no effect
        }
        let mut touches: BTreeMap<Element, Vec<(usize, Touch)>> = BTreeMap::new();
        for (k, event) in events.iter().enumerate() {
            let op = kernel.insns[event.insn].update_op();
            let mut reads: Vec<Element> = event.reads.iter().map(|(e, _)| *e).collect();
            if let (Some(_), Some(written)) = (op, event.write) {
                // the read that is part of an update is no access of its own
                let own = reads.iter().position(|e| *e == written).expect("updates read");
                reads.remove(own);
            }
            for element in reads {
                touches.entry(element).or_default().push((k, Touch::Read));
            }
            if let Some(element) = event.write {
                touches.entry(element).or_default().push((k, op.map_or(Touch::Assign, Touch::Update)));
            }
        }
        let number = |(k, e): (usize, &Event)| ((e.insn, e.point.clone()), k);
        let numbers = events.iter().enumerate().map(number).collect();
        Self { events, touches, numbers }
    }

    /// The number of an instance that ran.
    pub fn number(&self, insn: InsnId, point: &[i64]) -> Option<usize> {
        self.numbers.get(&(insn, point.to_vec())).copied()
    }
}

type Reads = Vec<(Element, Option<usize>)>;

struct Recorder {
    loops: Vec<Vec<InameId>>,
    events: Vec<Event>,
    last: HashMap<Element, usize>,
    /// For each loop its last entry: the point, and what its bounds read.
    entries: HashMap<InameId, (Vec<i64>, Reads)>,
    entering: Option<InameId>,
}

impl Observer for Recorder {
    fn instance(&mut self, insn: InsnId, point: &[i64]) {
        self.entering = None;
        let around = &self.loops[insn.index()];
        let bounds = around.iter().enumerate().filter_map(|(k, l)| {
            let (at, reads) = self.entries.get(l)?;
            (*at == point[..k]).then(|| reads.clone())
        });
        let reads = bounds.flatten().collect();
        self.events.push(Event { insn, point: point.to_vec(), reads, write: None });
    }

    fn enter_loop(&mut self, iname: InameId, point: &[i64]) {
        self.entering = Some(iname);
        self.entries.insert(iname, (point.to_vec(), Vec::new()));
    }

    fn read(&mut self, var: VarId, element: usize) {
        let read = ((var, element), self.last.get(&(var, element)).copied());
        match self.entering {
            Some(iname) => self.entries.get_mut(&iname).expect("entered").1.push(read),
            None => self.events.last_mut().expect("an instance").reads.push(read),
        }
    }

    fn write(&mut self, var: VarId, element: usize) {
        let now = self.events.len() - 1;
        self.last.insert((var, element), now);
        self.events[now].write = Some((var, element));
    }
}
