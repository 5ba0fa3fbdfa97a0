//! What the tokens of one file say.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

/// The facts of one file, in source order.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) modules: Vec<Module>,
    pub(crate) functions: Vec<Function>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) shows: Vec<Shows>,
    /// Macro calls by name, such as `dbg`.
    pub(crate) macros: Vec<Word>,
    /// Paths as written, such as `std::fs::read`; groups of a `use` are spelled out.
    pub(crate) paths: Vec<Word>,
    /// Attributes as text without spaces.
    pub(crate) attributes: Vec<Word>,
    /// Files named by `include!`.
    pub(crate) includes: Vec<PathBuf>,
}

/// `mod name;`
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    /// Module path of the declaration, from the target root.
    pub(crate) parents: Vec<String>,
    pub(crate) path: Option<PathBuf>,
    pub(crate) is_test: bool,
}

/// A function with a body.
#[derive(Debug)]
pub(crate) struct Function {
    /// Module path and name: how a test runner calls it.
    pub(crate) path: String,
    pub(crate) line_count: usize,
    /// Lies in test code.
    pub(crate) is_test: bool,
}

/// `branch!("name", ..)`
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) is_test: bool,
}

/// `shows!(rows; by marks)` and the function whose body it is in.
#[derive(Debug)]
pub(crate) struct Shows {
    pub(crate) rows: Vec<String>,
    pub(crate) marks: Vec<String>,
    pub(crate) line: usize,
    /// Path of the test, or `None` when the call is not the first statement of a test function.
    pub(crate) test: Option<String>,
}

/// A word with its place.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) line: usize,
    pub(crate) is_test: bool,
}

/// Lexes `text`, a file that is module `module` of its target.
///
/// # Errors
/// When the text is not lexically Rust.
pub(crate) fn scan(text: &str, module: &[String], is_test: bool) -> Result<Scan> {
    let tokens = TokenStream::from_str(text).map_err(|error| {
        let at = error.span().start();
        anyhow!("line {}: not lexically Rust", at.line)
    })?;
    let mut scan = Scan::default();
    walk(tokens, &Place { module: module.to_vec(), is_test, body_of: None }, &mut scan);
    Ok(scan)
}

/// Where the walk is.
#[derive(Clone)]
struct Place {
    module: Vec<String>,
    is_test: bool,
    /// Set while at the top level of a test function's body.
    body_of: Option<String>,
}

fn walk(tokens: TokenStream, place: &Place, scan: &mut Scan) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut attributes: Vec<String> = Vec::new();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        let rest = tokens.get(index + 1..).unwrap_or_default();
        index += 1;
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                let inner = matches!(rest.first(), Some(TokenTree::Punct(bang)) if bang.as_char() == '!');
                let Some(TokenTree::Group(group)) = rest.get(usize::from(inner)) else {
                    continue;
                };
                let text = group.stream().to_string().replace(' ', "");
                let is_test = place.is_test || is_test_only(&text);
                scan.attributes.push(Word { text: text.clone(), line: line(token), is_test });
                if !inner {
                    attributes.push(text);
                }
                index += 1 + usize::from(inner);
            }
            TokenTree::Punct(punct) if matches!(punct.as_char(), ';' | ',') => attributes.clear(),
            TokenTree::Ident(word) => {
                let place = Place {
                    is_test: place.is_test || attributes.iter().any(|text| is_test_only(text)),
                    ..place.clone()
                };
                let used = match word.to_string().as_str() {
                    "mod" => module(rest, &attributes, &place, scan),
                    "fn" => function(rest, line(token), &attributes, &place, scan),
                    name => call_or_path(name, &tokens, index - 1, &place, scan),
                };
                let consumed = rest.get(..used).unwrap_or_default();
                if matches!(consumed.last(), Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace) {
                    attributes.clear();
                }
                index += used;
            }
            TokenTree::Group(group) => {
                let is_test = place.is_test || attributes.iter().any(|text| is_test_only(text));
                walk(group.stream(), &Place { is_test, body_of: None, ..place.clone() }, scan);
                if group.delimiter() == Delimiter::Brace {
                    attributes.clear();
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Handles what follows `mod`; returns how many tokens it used.
fn module(rest: &[TokenTree], attributes: &[String], place: &Place, scan: &mut Scan) -> usize {
    let Some(TokenTree::Ident(name)) = rest.first() else {
        return 0;
    };
    match rest.get(1) {
        Some(TokenTree::Punct(end)) if end.as_char() == ';' => {
            let path = attributes.iter().find_map(|text| text.strip_prefix("path="));
            scan.modules.push(Module {
                name: name.to_string(),
                parents: place.module.clone(),
                path: path.map(|text| PathBuf::from(text.trim_matches('"'))),
                is_test: place.is_test,
            });
            1
        }
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => {
            let mut inner = Place { body_of: None, ..place.clone() };
            inner.module.push(name.to_string());
            walk(body.stream(), &inner, scan);
            2
        }
        _ => 0,
    }
}

/// Handles what follows `fn`; returns how many tokens it used.
fn function(rest: &[TokenTree], start: usize, attributes: &[String], place: &Place, scan: &mut Scan) -> usize {
    let Some(TokenTree::Ident(name)) = rest.first() else {
        return 0;
    };
    let end = rest.iter().position(|token| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    });
    let Some(end) = end else { return 0 };
    let path = test_path(place, name);
    // Parameter and return types can hold paths too.
    let signature = rest.get(1..end).unwrap_or_default().iter().cloned().collect();
    walk(signature, &Place { body_of: None, ..place.clone() }, scan);
    if let Some(TokenTree::Group(body)) = rest.get(end) {
        let is_test_function = attributes.iter().any(|text| is_test_attribute(text));
        scan.functions.push(Function {
            path: path.clone(),
            line_count: body.span_close().end().line.saturating_sub(start) + 1,
            is_test: place.is_test || is_test_function,
        });
        let inner = Place {
            is_test: place.is_test || is_test_function,
            body_of: is_test_function.then_some(path),
            ..place.clone()
        };
        walk(body.stream(), &inner, scan);
    }
    end + 1
}

/// How a test runner calls a function of this place.
fn test_path(place: &Place, name: &Ident) -> String {
    let mut path = place.module.clone();
    path.push(name.to_string());
    path.join("::")
}

/// Handles an identifier that begins a macro call or a path; returns how many further tokens it used.
fn call_or_path(name: &str, tokens: &[TokenTree], at: usize, place: &Place, scan: &mut Scan) -> usize {
    let line = tokens.get(at).map_or(0, line);
    if let (Some(TokenTree::Punct(bang)), Some(TokenTree::Group(arguments))) = (tokens.get(at + 1), tokens.get(at + 2))
        && bang.as_char() == '!'
    {
        scan.macros.push(Word { text: name.to_owned(), line, is_test: place.is_test });
        macro_call(name, arguments, line, is_first_statement(tokens, at), place, scan);
        return 1; // the group is walked by the caller: branches hide in arguments
    }
    let (paths, used) = paths(name, tokens, at);
    // A single word is no path: keywords and local names come through here too.
    let paths = paths.into_iter().filter(|path| path.contains("::"));
    scan.paths.extend(paths.map(|text| Word { text, line, is_test: place.is_test }));
    used
}

fn macro_call(name: &str, arguments: &Group, line: usize, is_first: bool, place: &Place, scan: &mut Scan) {
    let arguments: Vec<TokenTree> = arguments.stream().into_iter().collect();
    match name {
        "branch" => {
            if let Some(mark) = arguments.first().and_then(string) {
                scan.marks.push(Mark { name: mark, line, is_test: place.is_test });
            }
        }
        "shows" => {
            let by = arguments.iter().position(|token| matches!(token, TokenTree::Ident(word) if word == "by"));
            let (rows, marks) = arguments.split_at(by.unwrap_or(arguments.len()));
            scan.shows.push(Shows {
                rows: rows.iter().filter_map(string).collect(),
                marks: marks.iter().filter_map(string).collect(),
                line,
                test: place.body_of.clone().filter(|_| is_first),
            });
        }
        "field_rows" => field_rows(&arguments, place, scan),
        "include" => scan.includes.extend(arguments.first().and_then(string).map(PathBuf::from)),
        _ => {}
    }
}

/// A table of tests, each `test_name "row" ..`, which expands to one test function per line. Field rows are one test each
/// and hundreds of them; no branch carries them.
fn field_rows(arguments: &[TokenTree], place: &Place, scan: &mut Scan) {
    for entry in arguments.split(|token| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ',')) {
        let [TokenTree::Ident(name), row, ..] = entry else {
            continue;
        };
        let Some(row) = string(row) else { continue };
        scan.shows.push(Shows {
            rows: vec![row],
            marks: Vec::new(),
            line: name.span().start().line,
            test: Some(test_path(place, name)),
        });
    }
}

/// Whether only a path prefix such as `closer_contracts::` stands before the macro's name.
fn is_first_statement(tokens: &[TokenTree], at: usize) -> bool {
    tokens.iter().take(at).all(|token| match token {
        TokenTree::Punct(punct) => punct.as_char() == ':',
        TokenTree::Ident(word) => word == "crate" || word == "closer_contracts",
        TokenTree::Group(_) | TokenTree::Literal(_) => false,
    })
}

/// The paths that begin at `at`: one, or several where it ends in a `use` group.
fn paths(first: &str, tokens: &[TokenTree], at: usize) -> (Vec<String>, usize) {
    let mut path = first.to_owned();
    let mut used = 0;
    loop {
        let is_separator = [1, 2].iter().all(
            |step| matches!(tokens.get(at + used + step), Some(TokenTree::Punct(punct)) if punct.as_char() == ':'),
        );
        if !is_separator {
            return (vec![path], used);
        }
        match tokens.get(at + used + 3) {
            // A macro called by its path is handled as a call.
            Some(TokenTree::Ident(_)) if matches!(tokens.get(at + used + 4), Some(TokenTree::Punct(bang)) if bang.as_char() == '!') =>
            {
                return (vec![path], used + 2);
            }
            Some(TokenTree::Ident(word)) => {
                path = format!("{path}::{word}");
                used += 3;
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                return (group_paths(&path, group), used + 3);
            }
            _ => return (vec![path], used),
        }
    }
}

fn group_paths(prefix: &str, group: &Group) -> Vec<String> {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let mut found = Vec::new();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        if let TokenTree::Ident(word) = token {
            let (paths, used) = paths(&word.to_string(), &tokens, index);
            found.extend(paths.into_iter().map(|path| format!("{prefix}::{path}")));
            index += used;
        }
        index += 1;
    }
    found
}

/// `#[test]`, `#[tokio::test]`, `#[tokio::test(..)]`
fn is_test_attribute(text: &str) -> bool {
    let name = text.split('(').next().unwrap_or_default();
    name == "test" || name.ends_with("::test")
}

/// Attributes that keep an item out of what ships.
fn is_test_only(text: &str) -> bool {
    text == "cfg(test)" || text.starts_with("cfg(all(test,") || is_test_attribute(text)
}

/// The value of a plain string literal; raw and byte strings are never marks or rows.
fn string(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else {
        return None;
    };
    Some(literal.to_string().strip_prefix('"')?.strip_suffix('"')?.to_owned())
}

fn line(token: &TokenTree) -> usize {
    token.span().start().line
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
