//! Formatted lines, and where the comments after them stand.

/// A line whose code has its layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormattedLine {
    /// Whether an empty line stands before.
    pub empty_before: bool,
    /// Blanks before what is first.
    pub indent: usize,
    /// The code; empty where there is a comment alone.
    pub code: String,
    /// A comment with its `#`.
    pub comment: Option<String>,
    /// The column of the comment in the source: comments of a paragraph that stood below each other still do.
    pub column: usize,
}

impl FormattedLine {
    fn width(&self) -> usize {
        self.indent + self.code.chars().count()
    }

    fn has_both(&self) -> bool {
        !self.code.is_empty() && self.comment.is_some()
    }
}

/// The text of some lines: comments two blanks after the code, or aligned as they were.
#[must_use]
pub fn lay_out(lines: &[FormattedLine]) -> String {
    let mut text = String::new();
    let mut rest = lines;
    while let Some(first) = rest.first() {
        let more = rest[1..].iter().take_while(|line| !line.empty_before).count();
        let paragraph;
        (paragraph, rest) = rest.split_at(1 + more);
        if first.empty_before && !text.is_empty() {
            text.push('\n');
        }
        for line in paragraph {
            text += &" ".repeat(line.indent);
            text += &line.code;
            if line.has_both() {
                let aligned =
                    paragraph.iter().filter(|other| other.has_both() && other.column == line.column);
                let width = aligned.map(FormattedLine::width).max().unwrap_or(0); // default: the line is aligned with itself
                text += &" ".repeat(width + 2 - line.width());
            }
            text += line.comment.as_deref().unwrap_or_default(); // default: no comment, no text
            text.push('\n');
        }
    }
    text
}
