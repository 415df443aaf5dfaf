//! What is wrong with a text, and where.

use crate::position::Lines;
use kingpost_analysis::Witness;
use kingpost_ir::text::ParseError;
use kingpost_primitives::Refusal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;

/// Something wrong.
pub struct Problem {
    span: Range<usize>,
    message: String,
    /// The id of the obligation that is not met.
    code: Option<&'static str>,
    /// The two instances that clash, with the statements that they are of.
    instances: Option<Value>,
    related: Vec<(Range<usize>, String)>,
}

/// The statements of a text by the names that they declare.
pub type Statements = BTreeMap<String, Range<usize>>;

impl Problem {
    pub fn new(span: Range<usize>, message: String) -> Self {
        Self { span, message, code: None, instances: None, related: Vec::new() }
    }

    pub fn parsed(error: &ParseError) -> Self {
        let help = error.help.as_ref().map(|help| format!("; {help}"));
        Self::new(error.span.clone(), error.message.clone() + &help.unwrap_or_default()) // default: no advice
    }

    /// A refusal of what is at a place, or else of the statement of its first instance.
    pub fn refused(
        at: Option<Range<usize>>,
        message: String,
        cause: &Refusal,
        statements: &Statements,
    ) -> Self {
        let witness = cause.witness();
        let first = witness.and_then(|witness| statements.get(&witness.source.insn)).cloned();
        let mut problem = Self::new(at.or(first).unwrap_or(0..0), message); // default: the whole kernel's
        problem.code = cause.obligation().map(|obligation| obligation.id());
        problem.instances = witness.map(instances);
        for instance in witness.into_iter().flat_map(|witness| [&witness.source, &witness.sink]) {
            // a step may have made the instruction
            if let Some(statement) = statements.get(&instance.insn) {
                problem.related.push((statement.clone(), format!("the instance {instance}")));
            }
        }
        problem
    }

    /// As the protocol has it.
    pub fn diagnostic(&self, uri: &str, text: &str, lines: &Lines) -> Value {
        let related = self.related.iter().map(|(span, message)| {
            json!({"location": {"uri": uri, "range": lines.range(text, span)}, "message": message})
        });
        let mut diagnostic = json!({
            "range": lines.range(text, &self.span),
            "severity": 1,
            "source": "kingpost",
            "message": self.message,
            "relatedInformation": related.collect::<Vec<_>>(),
        });
        for (name, value) in [("code", self.code.map(Value::from)), ("data", self.instances.clone())] {
            if let Some(value) = value {
                diagnostic[name] = value;
            }
        }
        diagnostic
    }
}

fn instances(witness: &Witness) -> Value {
    let instance = |of: &kingpost_analysis::witness::Instance| json!({"insn": of.insn, "point": of.point});
    json!({
        "source": instance(&witness.source),
        "sink": instance(&witness.sink),
        "element": witness.element,
        "through": witness.through,
        "params": witness.params.iter().cloned().collect::<BTreeMap<_, _>>(),
    })
}
