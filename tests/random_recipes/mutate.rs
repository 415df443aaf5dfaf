//! Small changes of the text of a program, as slips of the hand make them: another operator, number or
//! name, an instruction left out or written twice, loops swapped or tagged.

use kingpost::ir::{AxisTag, MathFn};
use kingpost_sample::Random;

/// Words that stand for each other.
const CLASSES: [&[&str]; 10] = [
    &["+", "-", "*", "/"],
    &["=", "+=", "*=", "min=", "max="],
    &["<", "<=", ">", ">=", "=="],
    &["and", "or"],
    &["sum", "product", "minimum", "maximum"],
    &["min", "max", "copysign", "floor_div", "mod"],
    &["f64", "f32", "i64", "i32"],
    &["private", "local", "global", "subgroup"],
    &["in", "out", "inout"],
    &["fabs", "sqrt", "floor", "f64", "f32", "i32"],
];

/// Functions that every library rounds alike.
const EXACT: [MathFn; 11] = [
    MathFn::Sqrt,
    MathFn::Fabs,
    MathFn::Floor,
    MathFn::Ceil,
    MathFn::Trunc,
    MathFn::Round,
    MathFn::Fmod,
    MathFn::Fmin,
    MathFn::Fmax,
    MathFn::Fma,
    MathFn::Copysign,
];

/// A line by its words; all that stands between words is a word, too.
#[derive(Clone)]
struct Line {
    indent: usize,
    words: Vec<String>,
}

impl Line {
    fn of(text: &str) -> Self {
        let body = text.trim_start_matches(' ');
        Self { indent: text.len() - body.len(), words: words(body) }
    }

    fn text(&self) -> String {
        format!("{}{}", " ".repeat(self.indent), self.words.concat())
    }

    fn is_loop(&self) -> bool {
        self.words.first().is_some_and(|w| w == "for")
    }

    /// Whether it is an instruction: a label and a colon.
    fn is_insn(&self) -> bool {
        !["arg", "temp", "param", "table", "rule", "assume", "kernel"].contains(&self.first())
            && self.words.get(1).is_some_and(|w| w == ":")
    }

    fn first(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }
}

/// The words of a line: names, numbers, operators, single characters.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let name = |c: char| c.is_alphanumeric() || c == '_';
        let length = if first.is_ascii_digit() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            // `0..n` begins with an integer
            let is_real = rest[digits..].starts_with(['.', 'e']) && !rest[digits..].starts_with("..");
            let part = |c: char| !(c.is_ascii_digit() || ['.', 'e', '-'].contains(&c));
            if is_real { rest.find(part).unwrap_or(rest.len()) } else { digits }
        } else if name(first) {
            rest.find(|c: char| !name(c)).unwrap_or(rest.len())
        } else {
            let operators = ["+=", "*=", "<=", ">=", "==", ".."];
            operators.iter().find(|op| rest.starts_with(**op)).map_or(first.len_utf8(), |op| op.len())
        };
        let (word, behind) = rest.split_at(length);
        let (word, behind) = match behind.strip_prefix('=') {
            Some(tail) if ["min", "max"].contains(&word) && !tail.starts_with('=') => {
                (format!("{word}="), tail)
            }
            Some(_) | None => (word.to_owned(), behind),
        };
        found.push(word);
        rest = behind;
    }
    found
}

/// The text with functions that libraries round alike instead of those that they do not, so that
/// results are equal to the last bit.
pub fn with_exact_functions(text: &str) -> String {
    let exact = |word: &str| {
        match MathFn::from_name(word) {
            Some(function) if !EXACT.contains(&function) => {
                if function.arity() == 1 {
                    "fabs"
                } else {
                    "fmin"
                }
            }
            Some(_) | None => word,
        }
        .to_owned()
    };
    let line = |text: &str| {
        let mut line = Line::of(text);
        let is_call = |words: &[String], k: usize| words.get(k + 1).is_some_and(|w| w == "(");
        for k in 0..line.words.len() {
            if is_call(&line.words, k) {
                line.words[k] = exact(&line.words[k]);
            }
        }
        line.text()
    };
    text.lines().map(|l| line(l) + "\n").collect()
}

/// The lines of a program while it is changed.
struct Text<'r> {
    lines: Vec<Line>,
    random: &'r mut Random,
}

/// The text after a change, and what that is; none where it has no place for the one that was drawn.
pub fn mutated<'r>(text: &str, random: &'r mut Random) -> Option<(String, &'static str)> {
    // the code of functions is text of another language
    let (declared, lines): (Vec<&str>, Vec<&str>) = text
        .lines()
        .partition(|line| line.starts_with("extern ") || line.starts_with("  \"") || line.starts_with(')'));
    let mut text = Text { lines: lines.into_iter().map(Line::of).collect(), random };
    #[allow(clippy::type_complexity)] // a list of functions
    let changes: [(&'static str, fn(&mut Text<'r>) -> Option<()>); 12] = [
        ("another operator", Text::operator),
        ("another operator", Text::operator),
        ("another number", Text::number),
        ("another number", Text::number),
        ("another name", Text::name),
        ("another tag", Text::tag),
        ("a line left out", Text::left_out),
        ("an instruction twice", Text::twice),
        ("neighbours swapped", Text::swapped),
        ("loops swapped", Text::interchanged),
        ("a line moved in or out", Text::indented),
        ("a character left out", Text::character),
    ];
    let (name, change) = changes[text.below(changes.len())];
    change(&mut text)?;
    let lines: Vec<String> = text.lines.iter().map(Line::text).collect();
    let (head, rest) = lines.split_at(lines.len().min(1));
    let all = head.iter().map(String::as_str).chain(declared).chain(rest.iter().map(String::as_str));
    Some((all.map(|line| line.to_owned() + "\n").collect(), name))
}

impl Text<'_> {
    fn below(&mut self, n: usize) -> usize {
        (self.random.bits() % n.max(1) as u64) as usize
    }

    /// One of the lines of which something is true.
    fn line(&mut self, wanted: impl Fn(&Line) -> bool) -> Option<usize> {
        let found: Vec<usize> = (0..self.lines.len()).filter(|k| wanted(&self.lines[*k])).collect();
        let k = self.below(found.len());
        found.get(k).copied()
    }

    /// One of the words of which something is true: of any line, three times of four of the loop tree.
    fn word(&mut self, wanted: impl Fn(&str) -> bool) -> Option<(usize, usize)> {
        let all = self.below(4) == 0;
        let mut found = Vec::new();
        for (l, line) in self.lines.iter().enumerate().filter(|(_, l)| all || l.is_loop() || l.is_insn()) {
            found.extend(line.words.iter().enumerate().filter(|(_, w)| wanted(w)).map(|(w, _)| (l, w)));
        }
        let k = self.below(found.len());
        found.get(k).copied()
    }

    fn operator(&mut self) -> Option<()> {
        let (l, w) = self.word(|word| CLASSES.iter().any(|class| class.contains(&word)))?;
        let word = self.lines[l].words[w].clone();
        let class = CLASSES.iter().find(|class| class.contains(&word.as_str()))?;
        let others: Vec<&&str> = class.iter().filter(|other| **other != word).collect();
        let other = others[self.below(others.len())];
        self.lines[l].words[w] = (*other).to_owned();
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let (l, w) = self.word(|word| word.parse::<i64>().is_ok())?;
        let number: i64 = self.lines[l].words[w].parse().ok()?;
        let (more, fewer) = (number.saturating_add(1), (number - 1).max(0));
        let others =
            [more, fewer, number.saturating_mul(2), 0, 1, number.saturating_add(7), 1 << 31, i64::MAX];
        // mostly small ones, which leave a program that runs
        let k = self.below(4 * others.len());
        self.lines[l].words[w] = others[if k < others.len() { k } else { k % 2 }].to_string();
        Some(())
    }

    fn name(&mut self) -> Option<()> {
        let is_name = |word: &str| {
            word.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && !CLASSES.iter().any(|class| class.contains(&word))
        };
        let (to, from) = (self.word(is_name)?, self.word(is_name)?);
        let name = self.lines[from.0].words[from.1].clone();
        self.lines[to.0].words[to.1] = name;
        Some(())
    }

    fn tag(&mut self) -> Option<()> {
        let l = self.line(Line::is_loop)?;
        let tag = AxisTag::ALL[self.below(AxisTag::ALL.len())];
        let text = self.lines[l].words.concat();
        let head = text.split(" {").next().unwrap_or(&text);
        let head = match tag {
            AxisTag::Sequential => head.to_owned(),
            tag => format!("{head} {{{tag}}}"),
        };
        self.lines[l].words = words(&head);
        Some(())
    }

    /// A line and what is inside it.
    fn subtree(&self, l: usize) -> std::ops::Range<usize> {
        let inside = self.lines[l + 1..].iter().take_while(|line| line.indent > self.lines[l].indent);
        l..l + 1 + inside.count()
    }

    fn left_out(&mut self) -> Option<()> {
        let l = self.line(|line| !line.words.is_empty())?;
        let range = if self.below(4) == 0 { l..l + 1 } else { self.subtree(l) };
        self.lines.drain(range);
        Some(())
    }

    fn twice(&mut self) -> Option<()> {
        let l = self.line(Line::is_insn)?;
        let mut copy = self.lines[l].clone();
        copy.words[0] += "_again";
        // where it stands, or in another place
        let to = if self.below(2) == 0 { l } else { self.line(Line::is_insn)? };
        copy.indent = self.lines[to].indent;
        self.lines.insert(to + 1, copy);
        Some(())
    }

    fn swapped(&mut self) -> Option<()> {
        let l = self.line(|line| line.is_loop() || line.is_insn())?;
        let first = self.subtree(l);
        let next = self.lines.get(first.end).filter(|line| line.indent == self.lines[l].indent)?;
        (next.is_loop() || next.is_insn()).then_some(())?;
        let second = self.subtree(first.end);
        self.lines[first.start..second.end].rotate_left(first.len());
        Some(())
    }

    fn interchanged(&mut self) -> Option<()> {
        let (a, b) = (self.line(Line::is_loop)?, self.line(Line::is_loop)?);
        let words = std::mem::take(&mut self.lines[a].words);
        let other = std::mem::replace(&mut self.lines[b].words, words);
        if a != b {
            self.lines[a].words = other;
        }
        Some(())
    }

    fn indented(&mut self) -> Option<()> {
        let l = self.line(|line| line.is_loop() || line.is_insn())?;
        let inwards = self.below(2) == 0;
        let range = self.subtree(l);
        for line in &mut self.lines[range] {
            line.indent = if inwards { line.indent + 2 } else { line.indent.saturating_sub(2) };
        }
        Some(())
    }

    fn character(&mut self) -> Option<()> {
        let l = self.line(|line| !line.words.is_empty())?;
        let w = self.below(self.lines[l].words.len());
        self.lines[l].words[w].pop().map(drop)
    }
}

#[test]
fn a_text_is_the_lines_of_its_words() {
    let text = "kernel k\n\narg x: f64[n, 2] inout\n\nfor i in 0..n - 1 {l.0}\n  s1: x[i, 0] min= 1.5e-3*x[i + 1, 1] if i <= 7\n";
    let lines: String = text.lines().map(|l| Line::of(l).text() + "\n").collect();
    assert_eq!(lines, text);
    let line = Line::of("  s1: x[i, 0] min= 1.5e-3*x[i + 1, 1] if i <= 7");
    assert!(line.is_insn() && !line.is_loop() && line.words.contains(&"1.5e-3".to_owned()));
    assert!(line.words.contains(&"min=".to_owned()) && line.words.contains(&"<=".to_owned()));
    assert_eq!(
        with_exact_functions("s: x = sin(a[sin]) + pow(b, sqrt(c))\n"),
        "s: x = fabs(a[sin]) + fmin(b, sqrt(c))\n"
    );
}

/// Each change changes something, keeps the number of characters that it does not touch, and is drawn.
#[test]
fn every_change_is_made() {
    let text = "kernel k\nparam n: i32\narg x: f64[n] inout\n\nfor i in 0..n\n  for j in 0..2\n    s: x[i] += 1.0*x[i]\n  t: x[i] = x[i] + 2\n";
    let mut made = std::collections::BTreeSet::new();
    for seed in 0..400 {
        if let Some((other, change)) = mutated(text, &mut Random::of(seed)) {
            made.insert((change, other != text));
            assert_eq!(mutated(text, &mut Random::of(seed)), Some((other, change)));
        }
    }
    let changing = made.iter().filter(|(_, changed)| *changed).count();
    assert_eq!(changing, 10, "{made:?}");
}
