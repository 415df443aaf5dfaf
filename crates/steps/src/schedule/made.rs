//! What a step made: handles to loops, arrays, rules and instructions, by name.

use kingpost_ir::Kernel;
use std::collections::HashSet;
use std::fmt;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The thing of this name.
            pub fn named(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// Its name in the kernel.
            pub fn name(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(handle: $name) -> Self {
                handle.0
            }
        }

        impl From<&$name> for String {
            fn from(handle: &$name) -> Self {
                handle.0.clone()
            }
        }
    )* };
}

handles! {
    /// A loop. Its name stays until a step replaces the loop.
    Loop;
    /// A temporary, argument or table.
    Array;
    /// A substitution rule.
    RuleHandle;
    /// An instruction.
    Statement;
}

/// What a step made, in the order in which it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// New arrays and scalars.
    pub arrays: Vec<Array>,
    /// New loops, outer first where one is inside another.
    pub loops: Vec<Loop>,
    /// New substitution rules.
    pub rules: Vec<RuleHandle>,
    /// New instructions.
    pub insns: Vec<Statement>,
}

impl Made {
    /// Everything in `after` whose name `before` does not have.
    pub fn new_names(before: &Kernel, after: &Kernel) -> Self {
        fn fresh<'a>(
            old: impl Iterator<Item = &'a String>,
            new: impl Iterator<Item = &'a String>,
        ) -> Vec<String> {
            let (old, new): (Vec<_>, Vec<_>) = (old.collect(), new.collect());
            // a step leaves most of the order as it is: what both begin and end with is not new
            let begin = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
            let (old, new) = (&old[begin..], &new[begin..]);
            let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
            let old: HashSet<_> = old[..old.len() - end].iter().collect();
            new[..new.len() - end].iter().filter(|name| !old.contains(name)).map(|n| (*n).clone()).collect()
        }
        let arrays = fresh(before.vars.values().map(|v| &v.name), after.vars.values().map(|v| &v.name));
        let loops = fresh(before.inames.values().map(|i| &i.name), after.inames.values().map(|i| &i.name));
        let rules = fresh(before.rules.values().map(|r| &r.name), after.rules.values().map(|r| &r.name));
        let insns = fresh(before.insns.values().map(|i| &i.name), after.insns.values().map(|i| &i.name));
        Self {
            arrays: arrays.into_iter().map(Array).collect(),
            loops: loops.into_iter().map(Loop).collect(),
            rules: rules.into_iter().map(RuleHandle).collect(),
            insns: insns.into_iter().map(Statement).collect(),
        }
    }

    /// The handles of a step first, then everything else in `after` whose name `before` does not
    /// have.
    pub fn of(handles: &impl Handles, before: &Kernel, after: &Kernel) -> Self {
        fn rest<T: PartialEq>(first: &mut Vec<T>, new: Vec<T>) {
            for handle in new {
                if !first.contains(&handle) {
                    first.push(handle);
                }
            }
        }
        let mut made = Self::default();
        handles.list(&mut made);
        let new = Self::new_names(before, after);
        rest(&mut made.arrays, new.arrays);
        rest(&mut made.loops, new.loops);
        rest(&mut made.rules, new.rules);
        rest(&mut made.insns, new.insns);
        made
    }

    /// All names: arrays, loops, rules, instructions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let arrays = self.arrays.iter().map(Array::name);
        let loops = self.loops.iter().map(Loop::name);
        let rules = self.rules.iter().map(RuleHandle::name);
        arrays.chain(loops).chain(rules).chain(self.insns.iter().map(Statement::name))
    }
}

/// Handles to what a step made, of a type that says what there is.
pub trait Handles {
    /// Adds them to a list.
    fn list(&self, made: &mut Made);
}

impl Handles for () {
    fn list(&self, _: &mut Made) {}
}

impl Handles for Made {
    fn list(&self, made: &mut Made) {
        made.arrays.extend_from_slice(&self.arrays);
        made.loops.extend_from_slice(&self.loops);
        made.rules.extend_from_slice(&self.rules);
        made.insns.extend_from_slice(&self.insns);
    }
}

macro_rules! listed {
    ($($name:ident: $field:ident;)*) => { $(
        impl Handles for $name {
            fn list(&self, made: &mut Made) {
                made.$field.push(self.clone());
            }
        }
    )* };
}

listed! {
    Loop: loops;
    Array: arrays;
    RuleHandle: rules;
    Statement: insns;
}

impl<T: Handles, const N: usize> Handles for [T; N] {
    fn list(&self, made: &mut Made) {
        self.iter().for_each(|handle| handle.list(made));
    }
}

impl<T: Handles> Handles for Vec<T> {
    fn list(&self, made: &mut Made) {
        self.iter().for_each(|handle| handle.list(made));
    }
}

impl<T: Handles> Handles for Option<T> {
    fn list(&self, made: &mut Made) {
        self.iter().for_each(|handle| handle.list(made));
    }
}

impl<A: Handles, B: Handles> Handles for (A, B) {
    fn list(&self, made: &mut Made) {
        self.0.list(made);
        self.1.list(made);
    }
}
