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

/// The longest line that is told of what a program said, in characters.
const LINE_CHARACTERS_MAX: usize = 300;

/// What somebody else wrote, as one line of a bounded length: runs of blanks and line breaks are one space.
#[must_use]
pub fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(LINE_CHARACTERS_MAX).collect();
    let shown = visible(&cut, false);
    match cut.len() < line.len() {
        true => format!("{shown}..."),
        false => shown,
    }
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
    use super::{one_line, visible};

    #[test]
    fn what_directs_or_controls_is_spelled_out() {
        assert_eq!(
            visible("pay\u{202e}lla\u{202c} \u{200b}now\u{1b}[2J", false),
            "pay\\u{202e}lla\\u{202c} \\u{200b}now\\u{1b}[2J"
        );
        assert_eq!(visible("one\ntwo", true), "one\ntwo");
        assert_eq!(visible("one\ntwo", false), "one\\u{a}two");
        assert_eq!(one_line("one\n  two\u{1b}\n"), "one two\\u{1b}");
        assert_eq!(one_line(&"x".repeat(400)).len(), 303);
        assert_eq!(visible("Größe 10 µm, 東京", false), "Größe 10 µm, 東京");
    }
}
