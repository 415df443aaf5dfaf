//! Arrays by the names of a form's arguments.

use super::{Array, Imported};
use crate::lowering::{LoweredKernel, LoweredRole};
use crate::tabulated::{TabulatedError, TabulatedForm};
use kingpost_interp::{Memory, Value, with_elements};
use kingpost_ir::text::suggestion;
use kingpost_ir::{Atom, ScalarType};
use std::collections::{BTreeMap, BTreeSet};

/// Type and shape of an array that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Type of its elements.
    pub ty: ScalarType,
    /// Its extents.
    pub shape: Vec<usize>,
}

fn binding(name: &str, found: impl Into<String>, needed: impl Into<String>) -> TabulatedError {
    TabulatedError::Binding { name: name.into(), found: found.into(), needed: needed.into() }
}

impl Imported {
    /// Refuses names that no argument of the form has.
    ///
    /// # Errors
    /// [`TabulatedError::Binding`] with the nearest name and all of them.
    pub fn check_names<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<(), TabulatedError> {
        let form = &self.form;
        let mut known: BTreeSet<&str> = form.functions.iter().map(|f| f.argument_name()).collect();
        known.extend(form.constants.iter().map(|c| c.name.as_str()));
        known.extend(form.outputs.iter().map(|o| o.name.as_str()));
        for argument in self.kernels.iter().flat_map(|k| &k.arguments) {
            if !matches!(argument.role, LoweredRole::Constant { .. }) {
                known.insert(&argument.name);
            }
        }
        let spaces = form.spaces.iter();
        let own: Vec<String> = spaces.flat_map(|s| [s.map_name(), s.states_name(), s.count_name()]).collect();
        known.extend(own.iter().map(String::as_str));
        // orientations are given with facets, whether tables need them or not
        if known.contains("facet_cells") {
            known.insert("facet_states");
        }
        for name in names {
            if !known.contains(name) {
                let hint = suggestion(name, known.iter().copied());
                let all: Vec<String> = known.iter().map(|n| format!("`{n}`")).collect();
                let hint = hint.map(|h| format!("; {h}")).unwrap_or_default();
                return Err(binding(
                    name,
                    "a name that the form does not have",
                    format!("one of {}{hint}", all.join(", ")),
                ));
            }
        }
        Ok(())
    }

    /// The values of all parameters and arguments of a kernel; outputs that are not given are zero.
    /// Parameters follow from the shapes, and may be given as well.
    ///
    /// # Errors
    /// [`TabulatedError::Binding`]: a name that is unknown or missing, another type or shape.
    pub fn bind(&self, kernel: usize, arrays: &BTreeMap<String, Array>) -> Result<Memory, TabulatedError> {
        self.check_names(arrays.keys().map(String::as_str))?;
        let lowered = self.kernels.get(kernel).ok_or_else(|| {
            let needed = format!("a place below {}", self.kernels.len());
            TabulatedError::invalid("kernels", kernel, needed)
        })?;
        let given = arrays.iter().map(|(name, a)| {
            let (ty, shape) = (a.values.ty(), a.shape.clone());
            (name.clone(), Given { ty, shape })
        });
        let params = lowered.sizes(&self.form, &given.collect())?;
        let mut memory = Memory::new();
        for (name, value) in &params {
            memory.set_param(name, *value);
        }
        for argument in &lowered.arguments {
            let (name, role) = (&argument.name, argument.role);
            match role {
                LoweredRole::Constant { constant, component } => {
                    let constant = &self.form.constants[constant];
                    let values = arrays.get(&constant.name).map(|a| &a.values);
                    memory.set(name, component_of(values, component, &constant.name)?);
                }
                role if role.is_count() => {}
                _ => match arrays.get(name) {
                    Some(array) => memory.set(name, array.values.clone()),
                    None => memory.set(name, lowered.zeros(name, &params)),
                },
            }
        }
        Ok(memory)
    }
}

/// A component of a constant.
fn component_of(values: Option<&Value>, component: usize, name: &str) -> Result<Value, TabulatedError> {
    let found =
        values.and_then(|values| with_elements!(values, v => v.get(component).map(|x| Value::from(*x))));
    found.ok_or_else(|| binding(name, "no such component", format!("component {component}")))
}

impl LoweredKernel {
    /// The values of the parameters that follow from the shapes of arrays by name. Arrays of other
    /// kernels of the form may be among them; results may be missing.
    ///
    /// # Errors
    /// [`TabulatedError::Binding`]: an argument that is missing, of another type or shape, or that
    /// contradicts another one.
    pub fn sizes(
        &self,
        form: &TabulatedForm,
        given: &BTreeMap<String, Given>,
    ) -> Result<BTreeMap<String, i64>, TabulatedError> {
        let mut sizes: BTreeMap<String, (i64, String)> = BTreeMap::new();
        let mut constants = BTreeSet::new();
        for argument in &self.arguments {
            match argument.role {
                LoweredRole::Constant { constant, .. } => {
                    if constants.insert(constant) {
                        let (name, shape) = (&form.constants[constant].name, &form.constants[constant].shape);
                        let size: usize = shape.iter().product();
                        let needed = format!("{size} numbers of shape {shape:?}");
                        match given.get(name) {
                            None => return Err(binding(name, "no value", needed)),
                            Some(g) if g.shape.iter().product::<usize>() != size => {
                                return Err(binding(name, format!("the shape {:?}", g.shape), needed));
                            }
                            Some(g) => self.check_type(&argument.name, name, g)?,
                        }
                    }
                }
                role if role.is_count() => {}
                _ => self.array_sizes(&argument.name, argument.role, given, &mut sizes)?,
            }
        }
        for argument in &self.arguments {
            if argument.role.is_count() && !sizes.contains_key(&argument.name) {
                let needed = "an array whose extent it is";
                return Err(binding(&argument.name, "no array that says its value", needed));
            }
        }
        Ok(sizes.into_iter().map(|(name, (value, _))| (name, value)).collect())
    }

    fn check_type(&self, argument: &str, name: &str, given: &Given) -> Result<(), TabulatedError> {
        let needed = self.kernel.var(argument).map(|v| self.kernel.vars[v].ty);
        match needed {
            Some(needed) if needed != given.ty => {
                Err(binding(name, format!("elements of type `{}`", given.ty), format!("`{needed}`")))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn array_sizes(
        &self,
        name: &str,
        role: LoweredRole,
        given: &BTreeMap<String, Given>,
        sizes: &mut BTreeMap<String, (i64, String)>,
    ) -> Result<(), TabulatedError> {
        let Some(var) = self.kernel.var(name).map(|v| &self.kernel.vars[v]) else { return Ok(()) };
        let extent = |axis: &kingpost_ir::Affine| match (axis.as_constant(), axis.terms()) {
            (Some(n), _) => n.to_string(),
            (None, [(Atom::Var(param), 1)]) => self.kernel.vars[*param].name.clone(),
            (None, _) => "?".into(),
        };
        let shape: Vec<String> = var.shape.iter().map(extent).collect();
        let needed = format!("`{}` of shape [{}]", var.ty, shape.join(", "));
        let Some(found) = given.get(name) else {
            return match role {
                LoweredRole::Output { .. } => Ok(()),
                _ => Err(binding(name, "no array", needed)),
            };
        };
        self.check_type(name, name, found)?;
        let wrong =
            |more: &str| binding(name, format!("the shape {:?}", found.shape), format!("{needed}{more}"));
        // `[n, 1]` is `[n]`
        let extents = match (&found.shape[..], var.shape.len()) {
            ([n, 1], 1) => &[*n][..],
            (all, _) => all,
        };
        if extents.len() != var.shape.len() {
            return Err(wrong(""));
        }
        for (axis, n) in var.shape.iter().zip(extents) {
            let n = i64::try_from(*n).unwrap_or(i64::MAX);
            match (axis.as_constant(), axis.terms()) {
                (Some(constant), _) if constant != n => return Err(wrong("")),
                (None, [(Atom::Var(param), 1)]) => {
                    let param = self.kernel.vars[*param].name.clone();
                    match sizes.get(&param) {
                        Some((known, of)) if *known != n => {
                            return Err(wrong(&format!(", where `{of}` says that {param} is {known}")));
                        }
                        Some(_) => {}
                        None => {
                            sizes.insert(param, (n, name.to_owned()));
                        }
                    }
                }
                (Some(_) | None, _) => {}
            }
        }
        Ok(())
    }

    /// Zeros of the shape of an argument.
    fn zeros(&self, name: &str, params: &BTreeMap<String, i64>) -> Value {
        let var = self.kernel.var(name).map(|v| &self.kernel.vars[v]);
        let extent = |axis: &kingpost_ir::Affine| match (axis.as_constant(), axis.terms()) {
            (Some(n), _) => n,
            (None, [(Atom::Var(param), 1)]) => {
                params.get(&self.kernel.vars[*param].name).copied().unwrap_or(0)
            }
            (None, _) => 0,
        };
        let n: i64 = var.map_or(0, |v| v.shape.iter().map(extent).product());
        let n = usize::try_from(n).unwrap_or(0);
        Value::zeros(var.map_or(ScalarType::F64, |v| v.ty), n)
    }
}
