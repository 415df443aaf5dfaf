//! The lines of a source with their tokens and comments.

use crate::text::lex::Token;

/// A line of the source.
pub(super) struct Row<'r, 's> {
    pub(super) tokens: &'r [Token<'s>],
    pub(super) comment: Option<&'s str>,
    /// Blanks before what is first, in characters.
    pub(super) indent: usize,
    /// Where the comment starts, in characters.
    pub(super) column: usize,
}

/// The lines of the source, which has neither bad tokens nor line breaks among them.
pub(super) fn rows<'r, 's>(source: &'s str, tokens: &'r [Token<'s>]) -> Vec<Row<'r, 's>> {
    let (mut rows, mut rest, mut start) = (Vec::new(), tokens, 0);
    for line in source.split('\n') {
        let end = start + line.len();
        let own;
        (own, rest) = rest.split_at(rest.iter().take_while(|token| token.span.start < end).count());
        // a `#` in a string is before the end of the last token
        let code = own.last().map_or(start, |token| token.span.end);
        let comment = source[code..end].find('#').map(|at| code + at);
        let first = own.first().map(|token| token.span.start).or(comment).unwrap_or(end); // default: an empty line
        let characters = |to: usize| source[start..to].chars().count();
        rows.push(Row {
            tokens: own,
            comment: comment.map(|at| source[at..end].trim_end()),
            indent: characters(first),
            column: comment.map_or(0, characters),
        });
        start = end + 1;
    }
    rows
}
