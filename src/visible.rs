//! Text that agents and sources wrote, as a person may be shown it: nothing in it draws on the place where people decide.

/// The text with whatever controls a terminal, a page or the direction of writing spelled out; a line break stays where
/// `keeps_lines` says so.
#[must_use]
pub fn visible(text: &str, keeps_lines: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' if keeps_lines => shown.push('\n'),
            _ if directs(character) || character.is_control() => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    shown
}

/// Whether a character has no shape of its own and changes how others are read: marks of direction, joiners and spaces of
/// no width, tags.
const fn directs(character: char) -> bool {
    matches!(
        character,
        '\u{61c}'
            | '\u{ad}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn what_directs_or_controls_is_spelled_out() {
        assert_eq!(
            visible("pay\u{202e}lla\u{202c} \u{200b}now\u{1b}[2J", false),
            "pay\\u{202e}lla\\u{202c} \\u{200b}now\\u{1b}[2J"
        );
        assert_eq!(visible("one\ntwo", true), "one\ntwo");
        assert_eq!(visible("one\ntwo", false), "one\\u{a}two");
        assert_eq!(visible("Größe 10 µm, 東京", false), "Größe 10 µm, 東京");
    }
}
