//! One page per refusal code, and no page without a code.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use proc_macro2::{TokenStream, TokenTree};

const TABLE: &str = "contracts/src/refusal.rs";
const PAGES: &str = "docs/refusals";

/// Codes without a page, pages without a code, and pages that do not name their code.
///
/// # Errors
/// When the table or the pages cannot be read.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(TABLE)).with_context(|| format!("cannot read {TABLE}"))?;
    let slugs = slugs(&text).with_context(|| format!("cannot read {TABLE}"))?;
    let mut pages = BTreeSet::new();
    let mut errors = Vec::new();
    for entry in std::fs::read_dir(root.join(PAGES)).with_context(|| format!("cannot list {PAGES}"))? {
        let path = entry?.path();
        let Some(slug) = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned) else {
            continue;
        };
        let page = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if !page.starts_with("# ") || !page.contains(&slug) {
            errors.push(format!("{PAGES}/{slug}.md: begins with no heading or never names its code"));
        }
        pages.insert(slug);
    }
    errors.extend(slugs.difference(&pages).map(|slug| format!("refusal `{slug}` has no page {PAGES}/{slug}.md")));
    errors.extend(pages.difference(&slugs).map(|page| format!("{PAGES}/{page}.md: no refusal has this slug")));
    Ok(errors)
}

/// The slugs of the table `codes! { NUMBER Variant "slug" .. }`.
fn slugs(text: &str) -> Result<BTreeSet<String>> {
    let tokens = TokenStream::from_str(text).map_err(|error| anyhow!("not lexically Rust: {error}"))?;
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let table = tokens.windows(3).find_map(|window| match window {
        [TokenTree::Ident(name), TokenTree::Punct(_), TokenTree::Group(table)] if name == "codes" => {
            Some(table.stream())
        }
        _ => None,
    });
    let Some(table) = table else { bail!("there is no `codes!` table") };
    let row: Vec<TokenTree> = table.into_iter().collect();
    let slugs: BTreeSet<String> = row
        .windows(3)
        .filter_map(|window| match window {
            [TokenTree::Literal(number), TokenTree::Ident(_), TokenTree::Literal(slug)] => {
                number.to_string().parse::<u16>().ok()?;
                Some(slug.to_string().trim_matches('"').to_owned())
            }
            _ => None,
        })
        .collect();
    if slugs.is_empty() {
        bail!("the `codes!` table holds no rows");
    }
    Ok(slugs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"macro_rules! codes { ($($n:literal $v:ident $s:literal),+) => {} }
        codes! { // comment
            101 Duplicate "duplicate" "§1" "Was recorded.", 102 StaleParent "stale_parent" "§5" "Is old.", }"#;

    fn tree(pages: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir_all(folder.path().join("contracts/src")).expect("folder");
        std::fs::create_dir_all(folder.path().join(PAGES)).expect("folder");
        std::fs::write(folder.path().join(TABLE), TWO).expect("written");
        for page in pages {
            let text = format!("# `{page}`\n");
            std::fs::write(folder.path().join(PAGES).join(format!("{page}.md")), text).expect("written");
        }
        folder
    }

    #[test]
    fn each_code_has_its_page_and_each_page_its_code() {
        assert_eq!(check(tree(&["duplicate", "stale_parent"]).path()).expect("read"), Vec::<String>::new());
        let found = check(tree(&["duplicate", "unheard_of"]).path()).expect("read");
        assert_eq!(
            found,
            [
                "refusal `stale_parent` has no page docs/refusals/stale_parent.md",
                "docs/refusals/unheard_of.md: no refusal has this slug",
            ]
        );
    }

    #[test]
    fn a_table_that_is_gone_is_an_error() {
        assert!(slugs("fn other() {}").is_err());
        assert!(slugs("codes! {}").is_err());
    }
}
