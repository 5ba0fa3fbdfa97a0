//! What a program said when it failed, cut to what a person reads of it.

/// How much of a line is told, in characters.
const CHARACTERS_MAX: usize = 200;

/// The first line of what a program wrote that says anything, without its controls; nothing where it said nothing.
#[must_use]
pub fn said(written: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(written);
    let line = text.lines().map(str::trim).find(|line| line.chars().any(char::is_alphanumeric))?;
    let shown = |character: char| if character.is_control() { ' ' } else { character };
    let mut told: String = line.chars().take(CHARACTERS_MAX).map(shown).collect();
    if line.chars().count() > CHARACTERS_MAX {
        told.push_str("...");
    }
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::said;

    #[test]
    fn one_line_of_bounded_length_without_controls_is_told() {
        let openssl = b"\nCould not open file or uri for loading certificate from web.pem\n40A7:error:16000069:STORE\n";
        assert_eq!(said(openssl).as_deref(), Some("Could not open file or uri for loading certificate from web.pem"));
        assert_eq!(said(b"a\x1b[2Jb\tc\r\nd").as_deref(), Some("a [2Jb c"));
        assert_eq!(said("\u{e9}".repeat(500).as_bytes()).map(|told| told.chars().count()), Some(203));
        assert_eq!((said(b""), said(b"\n--\n")), (None, None));
    }
}
