//! Text in pictures: where it fits, and what is left of it where it does not.
//!
//! Whoever shows an SVG chooses the font. Widths here are those of a wide one, so that nothing is
//! cut off by another.

/// Width of a letter as part of the size of its font, as `plotters` counts sizes: that of DejaVu
/// Sans on an average, and a little.
const WIDTH: f64 = 0.52;

/// Pixels that a text takes.
pub(crate) fn width(text: &str, size: u32) -> u32 {
    (text.chars().count() as f64 * WIDTH * f64::from(size)).ceil() as u32
}

/// The text, or its begin and its end where it takes more than `pixels`.
pub(crate) fn fitted(text: &str, size: u32, pixels: u32) -> String {
    let most = (f64::from(pixels) / (WIDTH * f64::from(size))) as usize;
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let (begin, end) = (kept - kept / 2, kept / 2);
    let first: String = text.chars().take(begin).collect();
    first + "…" + &text.chars().skip(count - end).collect::<String>()
}

/// The text in lines of at most `pixels`, broken at blanks, and within words that are longer.
pub(crate) fn wrapped(text: &str, size: u32, pixels: u32) -> Vec<String> {
    let most = ((f64::from(pixels) / (WIDTH * f64::from(size))) as usize).max(1);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let mut rest: Vec<char> = word.chars().collect();
        if let Some(line) = lines.last_mut()
            && line.chars().count() + 1 + rest.len() <= most
        {
            line.push(' ');
            line.extend(rest);
            continue;
        }
        while rest.len() > most {
            lines.push(rest.drain(..most).collect());
        }
        lines.push(rest.into_iter().collect());
    }
    lines
}

/// Checks that each text of a picture lies within it.
///
/// # Panics
/// One that does not.
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
pub(crate) fn check_texts(svg: &str) {
    fn of<'s>(tag: &'s str, name: &str) -> &'s str {
        let start = tag.find(&format!(" {name}=\"")).unwrap_or_else(|| panic!("no {name} in {tag}"));
        tag[start + name.len() + 3..].split('"').next().unwrap()
    }
    let number = |tag: &str, name: &str| of(tag, name).parse::<f64>().unwrap();
    let head = &svg[..svg.find('>').unwrap()];
    let (right, bottom) = (number(head, "width"), number(head, "height"));
    for part in svg.split("<text ").skip(1) {
        let tag = format!(" {}", &part[..part.find('>').unwrap()]);
        let text = part[tag.len()..].split('<').next().unwrap().trim();
        let text = text.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
        let size = 1.24 * number(&tag, "font-size"); // `plotters` takes sizes for points of another unit
        let (x, y) = (number(&tag, "x"), number(&tag, "y"));
        let long = f64::from(width(&text, 1000)) * size / 1000.0;
        let start = match of(&tag, "text-anchor") {
            "start" => 0.0,
            "middle" => long / 2.0,
            _ => long,
        };
        let turned = if tag.contains("transform") { of(&tag, "transform") } else { "" };
        let (low, high, edge, along) = match turned.get(..10) {
            Some("rotate(90,") => (y - start, y + long - start, bottom, x),
            Some("rotate(270") => (y - long + start, y + start, bottom, x),
            _ => (x - start, x + long - start, right, y),
        };
        assert!(low >= -1.0 && high <= edge + 1.0, "`{text}` reaches from {low} to {high} of {edge}: {tag}");
        assert!(along >= 0.0 && along <= right.max(bottom), "`{text}` at {along}: {tag}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_longer_than_allowed_and_no_letter_is_lost() {
        let text = "the quick brown fox, avery".to_owned() + &"long".repeat(50) + "word and ä short one";
        for pixels in [50, 100, 333, 10_000] {
            let lines = wrapped(&text, 14, pixels);
            assert!(lines.iter().all(|line| width(line, 14) <= pixels + 9), "{pixels}: {lines:?}");
            assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
            assert!(width(&fitted(&text, 14, pixels), 14) <= pixels + 9);
        }
        assert_eq!(wrapped("", 14, 100), [""; 0]);
        assert_eq!(fitted("as it is", 14, 100), "as it is");
        assert_eq!(fitted("a text that is too long", 10, 62), "a tex… long");
    }
}
