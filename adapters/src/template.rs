//! Placeholders in contracts: `{name}` stands for a value, `{{` and `}}` for braces. Nothing is ever evaluated.

/// One piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Text as it stands.
    Literal(String),
    /// The value of a name.
    Placeholder(&'a str),
}

/// Splits a template into its pieces, or says what is wrong with it.
pub(crate) fn pieces(template: &str) -> Result<Vec<Piece<'_>>, String> {
    let unbalanced = || format!("`{template}` has a brace that is neither a placeholder nor doubled");
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (text, from_brace) = rest.split_at(at);
        literal.push_str(text);
        if let Some(after) = from_brace.strip_prefix("{{") {
            literal.push('{');
            rest = after;
        } else if let Some(after) = from_brace.strip_prefix("}}") {
            literal.push('}');
            rest = after;
        } else {
            let inner = from_brace.strip_prefix('{').ok_or_else(unbalanced)?;
            let (name, after) = inner.split_once('}').ok_or_else(unbalanced)?;
            if name.is_empty() || name.contains('{') {
                return Err(unbalanced());
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Placeholder(name));
            rest = after;
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn placeholders_and_doubled_braces_are_told_apart() {
        let literal = |text: &str| Piece::Literal(text.to_owned());
        assert_eq!(pieces("{target}").unwrap(), [Piece::Placeholder("target")]);
        assert_eq!(
            pieces("-days={days}/{{x}}").unwrap(),
            [literal("-days="), Piece::Placeholder("days"), literal("/{x}")]
        );
        assert_eq!(pieces("").unwrap(), []);
        for broken in ["{", "}", "{}", "a{b", "{a{b}}", "a}b"] {
            assert!(pieces(broken).is_err(), "{broken}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_split_or_refused(text in any::<String>()) {
            let _: Result<Vec<Piece<'_>>, String> = pieces(&text);
            let doubled = text.replace('{', "{{").replace('}', "}}");
            let whole: Vec<Piece<'_>> = pieces(&doubled).unwrap();
            let expected = match text.is_empty() {
                true => Vec::new(),
                false => vec![Piece::Literal(text)],
            };
            prop_assert_eq!(whole, expected);
        }
    }
}
