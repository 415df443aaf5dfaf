//! The text of a file of facts, and its parts by line.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The facts of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactFile {
    lines: Vec<String>,
    /// The facts in the order of the text.
    pub facts: Vec<Fact>,
}

/// A program, and what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The name; no other fact of the file has it.
    pub name: String,
    /// The line of its heading, from 1.
    pub line: usize,
    /// Why it is so: the lines of the comment below the heading, without `#`.
    pub why: String,
    /// The program.
    pub kernel: Body,
    /// What is asked of it, in order.
    pub questions: Vec<Question>,
}

/// A line `> question` and the answer below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its line, from 1.
    pub line: usize,
    /// What stands after `>`.
    pub text: String,
    /// The expected answer.
    pub answer: Body,
}

/// Lines of a file that hold a program or an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The lines without blank ones at both ends.
    pub text: String,
    /// Where they stand, with the blank ones; from 0.
    lines: Range<usize>,
}

/// A line that is not as files of facts are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {message}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// What was found, and what was needed.
    pub message: String,
}

fn error(line: usize, message: impl Into<String>) -> ParseError {
    ParseError { line: line + 1, message: message.into() }
}

/// What a line `== …` announces.
enum Heading<'a> {
    Kernel(&'a str),
    Fact(&'a str, Option<&'a str>),
}

impl FactFile {
    /// Reads a file.
    ///
    /// # Errors
    /// The first line that is no heading, question or part of a program; names that stand twice,
    /// nowhere or for nothing.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let starts: Vec<usize> = (0..lines.len()).filter(|k| is_heading(&lines[*k])).collect();
        let top = starts.first().copied().unwrap_or(lines.len());
        let stray = (0..top).find(|k| !lines[*k].trim().is_empty() && !lines[*k].starts_with('#'));
        if let Some(k) = stray {
            return Err(error(k, format!("found `{}`, needed `== kernel` or `== fact`", lines[k])));
        }
        let mut file = Self { lines, facts: Vec::new() };
        let mut kernels: BTreeMap<String, (usize, Body)> = BTreeMap::new();
        let mut used = BTreeSet::new();
        for (k, start) in starts.iter().enumerate() {
            let end = starts.get(k + 1).copied().unwrap_or(file.lines.len());
            match heading(&file.lines[*start]).map_err(|message| error(*start, message))? {
                Heading::Kernel(name) => {
                    let body = file.kernel(*start, end)?;
                    if kernels.insert(name.to_owned(), (*start, body)).is_some() {
                        return Err(error(*start, format!("there is a kernel `{name}` already")));
                    }
                }
                Heading::Fact(name, on) => {
                    let shared = match on.map(|on| (on, kernels.get(on))) {
                        None => None,
                        Some((on, Some((_, body)))) => {
                            used.insert(on.to_owned());
                            Some(body.clone())
                        }
                        Some((on, None)) => {
                            let known: Vec<_> = kernels.keys().map(|k| format!("`{k}`")).collect();
                            let message =
                                format!("there is no kernel `{on}` above, only {}", known.join(", "));
                            return Err(error(*start, message));
                        }
                    };
                    let fact = file.fact(name, *start..end, shared)?;
                    if file.facts.iter().any(|f| f.name == name) {
                        return Err(error(*start, format!("there is a fact `{name}` already")));
                    }
                    file.facts.push(fact);
                }
            }
        }
        match kernels.iter().find(|(name, _)| !used.contains(*name)) {
            Some((name, (start, _))) => Err(error(*start, format!("no fact is about `{name}`"))),
            None => Ok(file),
        }
    }

    /// The program below a heading.
    fn kernel(&self, start: usize, end: usize) -> Result<Body, ParseError> {
        let (_, body) = self.why(start, end);
        if let Some(k) = body.clone().find(|k| is_question(&self.lines[*k])) {
            return Err(error(k, "a question outside facts; needed `== fact NAME on KERNEL` above it"));
        }
        let body = self.body(body);
        if body.text.is_empty() { Err(error(start, "needed a program in the lines below")) } else { Ok(body) }
    }

    fn fact(&self, name: &str, lines: Range<usize>, shared: Option<Body>) -> Result<Fact, ParseError> {
        let start = lines.start;
        let (why, rest) = self.why(start, lines.end);
        let asked: Vec<usize> = rest.clone().filter(|k| is_question(&self.lines[*k])).collect();
        let Some(first) = asked.first().copied() else {
            return Err(error(start, format!("nothing is asked; needed a line `> …` in `{name}`")));
        };
        let own = self.body(rest.start..first);
        let kernel = match shared {
            Some(shared) if own.text.is_empty() => shared,
            Some(_) => return Err(error(rest.start, "needed a line `> …`: the heading names the program")),
            None if own.text.is_empty() => {
                return Err(error(start, "needed a program, in the lines below or as `on KERNEL`"));
            }
            None => own,
        };
        let questions = asked.iter().enumerate().map(|(k, at)| Question {
            line: at + 1,
            text: self.lines[*at][1..].trim().to_owned(),
            answer: self.body(at + 1..asked.get(k + 1).copied().unwrap_or(rest.end)),
        });
        let questions = questions.collect();
        Ok(Fact { name: name.to_owned(), line: start + 1, why, kernel, questions })
    }

    /// The comment below a heading, and the lines after it.
    fn why(&self, start: usize, end: usize) -> (String, Range<usize>) {
        let comment = (start + 1..end).take_while(|k| self.lines[*k].starts_with('#'));
        let words: Vec<_> = comment.map(|k| self.lines[k][1..].trim()).collect();
        (words.join("\n"), start + 1 + words.len()..end)
    }

    fn body(&self, lines: Range<usize>) -> Body {
        Body { text: trimmed(&self.lines[lines.clone()].join("\n")), lines }
    }

    /// The text with other programs or answers in some places.
    ///
    /// # Errors
    /// A line that would be read as a heading or a question.
    pub fn with(&self, changes: &[(&Body, String)]) -> Result<String, String> {
        let mut changes: Vec<_> = changes.iter().collect();
        changes.sort_by_key(|(body, _)| body.lines.start);
        let mut lines = self.lines.clone();
        for (body, text) in changes.into_iter().rev() {
            let text = trimmed(text);
            if let Some(line) = text.lines().find(|l| is_heading(l) || is_question(l)) {
                return Err(format!("the answer has a line `{line}`, which files of facts cannot hold"));
            }
            // A blank line between what follows and the answer, as between paragraphs.
            let gap = (body.lines.end < lines.len()).then(String::new);
            lines.splice(body.lines.clone(), text.lines().map(str::to_owned).chain(gap));
        }
        Ok(lines.join("\n").trim_end().to_owned() + "\n")
    }
}

/// A text without blank lines and blanks at its ends.
pub(crate) fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let first = lines.iter().position(|l| !l.is_empty()).unwrap_or(lines.len());
    let last = lines.iter().rposition(|l| !l.is_empty()).map_or(first, |k| k + 1);
    lines[first..last].join("\n")
}

fn is_heading(line: &str) -> bool {
    line == "==" || line.starts_with("== ")
}

fn is_question(line: &str) -> bool {
    line == ">" || line.starts_with("> ")
}

fn heading(line: &str) -> Result<Heading<'_>, String> {
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    match words.as_slice() {
        ["kernel", name] => Ok(Heading::Kernel(name)),
        ["fact", name] => Ok(Heading::Fact(name, None)),
        ["fact", name, "on", kernel] => Ok(Heading::Fact(name, Some(kernel))),
        _ => Err(format!(
            "found `{line}`, needed `== kernel NAME`, `== fact NAME` or `== fact NAME on KERNEL`"
        )),
    }
}

#[cfg(test)]
#[allow(clippy::panic)] // what a failed test does
mod tests {
    use super::*;

    const FILE: &str = "# About this file.

== kernel a
# What `a` is.
kernel a

s: y = 1.0

== fact first on a
# Because.
# And so.
> ask(1)
> ask(2)

one

two

== fact second
kernel b
> ask
no
";

    fn parsed(text: &str) -> FactFile {
        FactFile::parse(text).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn what_a_file_says() {
        let file = parsed(FILE);
        let [first, second] = file.facts.as_slice() else { panic!("two facts") };
        assert_eq!((first.name.as_str(), first.line, first.why.as_str()), ("first", 9, "Because.\nAnd so."));
        assert_eq!(first.kernel.text, "kernel a\n\ns: y = 1.0");
        let asked: Vec<_> =
            first.questions.iter().map(|q| (q.line, q.text.as_str(), q.answer.text.as_str())).collect();
        assert_eq!(asked, [(12, "ask(1)", ""), (13, "ask(2)", "one\n\ntwo")]);
        assert_eq!(
            (second.kernel.text.as_str(), second.questions[0].answer.text.as_str()),
            ("kernel b", "no")
        );
    }

    #[test]
    fn changed_answers_leave_the_rest() {
        let file = parsed(FILE);
        let [first, second] = file.facts.as_slice() else { panic!("two facts") };
        let changes = [
            (&first.questions[0].answer, "zero\n".to_owned()),
            (&first.kernel, "kernel c\n".to_owned()),
            (&second.kernel, "kernel d".to_owned()),
            (&second.questions[0].answer, "yes\n\n".to_owned()),
        ];
        let expected = FILE
            .replace("kernel a\n\ns: y = 1.0", "kernel c")
            .replace("> ask(1)\n", "> ask(1)\nzero\n\n")
            .replace("kernel b\n", "kernel d\n\n")
            .replace("\nno\n", "\nyes\n");
        assert_eq!(file.with(&changes), Ok(expected));
        assert_eq!(file.with(&[]).as_deref(), Ok(FILE));
        assert_eq!(
            file.with(&[(&first.kernel, "a\n> b".to_owned())]),
            Err("the answer has a line `> b`, which files of facts cannot hold".to_owned())
        );
    }

    #[test]
    fn what_is_no_file_of_facts() {
        let said =
            |text: &str| FactFile::parse(text).map_or_else(|e| e.to_string(), |_| "is read".to_owned());
        assert_eq!(said("# a\nfact b\n"), "2: found `fact b`, needed `== kernel` or `== fact`");
        assert_eq!(
            said("== fct b\n"),
            "1: found `== fct b`, needed `== kernel NAME`, `== fact NAME` or `== fact NAME on KERNEL`"
        );
        assert_eq!(said("== fact b\nx\n"), "1: nothing is asked; needed a line `> …` in `b`");
        assert_eq!(said("== fact b\n> q\n"), "1: needed a program, in the lines below or as `on KERNEL`");
        assert_eq!(said("== kernel a\n\n"), "1: needed a program in the lines below");
        assert_eq!(
            said("== kernel a\nx\n> q\n"),
            "3: a question outside facts; needed `== fact NAME on KERNEL` above it"
        );
        assert_eq!(said("== kernel a\nx\n"), "1: no fact is about `a`");
        assert_eq!(
            said("== kernel a\nx\n== fact b on c\n> q\n"),
            "3: there is no kernel `c` above, only `a`"
        );
        assert_eq!(said("== kernel a\nx\n== kernel a\ny\n"), "3: there is a kernel `a` already");
        let twice = "== fact b\nx\n> q\n== fact b\nx\n> q\n";
        assert_eq!(said(twice), "4: there is a fact `b` already");
        assert_eq!(
            said("== kernel a\nx\n== fact b on a\n# why\nx\n> q\n"),
            "5: needed a line `> …`: the heading names the program"
        );
    }
}
