//! Text of files and databases on a terminal, which takes control characters for commands.

use std::borrow::Cow;

/// The text with control characters as Rust writes them (`\u{1b}`), except for line feeds and tabs.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_command) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if is_command(c) { c.escape_debug().collect() } else { String::from(c) };
    Cow::Owned(text.chars().map(escape).collect())
}

/// The text with another character for each of these, so that places in it stay what they
/// are.
pub fn same_length(text: &str) -> String {
    let replace = |c: char| match (is_command(c), c.len_utf8()) {
        (false, _) => c,
        (true, 1) => '?',
        (true, _) => '\u{b7}', // as all control characters beyond ASCII, two bytes
    };
    text.chars().map(replace).collect()
}

fn is_command(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_terminal_are_shown() {
        assert!(matches!(shown("two\n\tlines, ä │"), Cow::Borrowed(_)));
        assert_eq!(shown("\u{1b}]0;title\u{7}\r\u{9b}2J\u{7f}"), "\\u{1b}]0;title\\u{7}\\r\\u{9b}2J\\u{7f}");
    }

    #[test]
    fn places_in_a_text_stay() {
        let text = "a\u{1b}[31mä\u{9b}2J\nb";
        let other = same_length(text);
        assert_eq!(other, "a?[31mä\u{b7}2J\nb");
        assert_eq!(other.len(), text.len());
    }
}
