//! Labels as comments.

use std::fmt::Write;

/// A comment up to the end of its line, whatever the text: C joins a line that ends in a backslash,
/// or in the trigraph of one, with the next, and other characters than a line feed may end a line
/// or turn its direction.
pub(super) fn comment(text: &str) -> String {
    let is_plain =
        |c: char| !c.is_control() && !matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut line = String::from("// ");
    for c in text.trim_end().chars() {
        if is_plain(c) {
            line.push(c);
        } else {
            let _ = write!(line, "\\u{{{:x}}}", u32::from(c));
        }
    }
    if line.ends_with(['\\', '/']) {
        line.push_str(" .");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::comment;

    #[test]
    fn comments_stay_on_their_lines() {
        let cases = [
            ("geometry", "// geometry"),
            ("C:\\tmp\\", "// C:\\tmp\\ ."),
            ("C:\\tmp\\ \t", "// C:\\tmp\\ ."),
            ("what??/", "// what??/ ."),
            ("a\nb\r\0\u{2028}\u{202e}", "// a\\u{a}b\\u{d}\\u{0}\\u{2028}\\u{202e}"),
            ("größer */ \"", "// größer */ \""),
        ];
        for (text, line) in cases {
            assert_eq!(comment(text), line);
        }
    }
}
