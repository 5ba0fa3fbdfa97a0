//! Relative links of the project's pages lead somewhere.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::source::relative;

/// Links of Markdown files in the root and below `docs/` whose target does not exist.
///
/// # Errors
/// When a folder or page cannot be read.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut pages = Vec::new();
    list(root, false, &mut pages)?;
    list(&root.join("docs"), true, &mut pages)?;
    pages.sort();
    let mut errors = Vec::new();
    for page in pages {
        let shown = relative(root, &page);
        let text = std::fs::read_to_string(&page).with_context(|| format!("cannot read {shown}"))?;
        let folder = page.parent().unwrap_or(root);
        let dead = targets(&text).filter(|target| !folder.join(target).exists());
        errors.extend(dead.map(|target| format!("{shown}: link to `{target}` leads nowhere")));
    }
    Ok(errors)
}

fn list(folder: &Path, is_deep: bool, pages: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() && is_deep {
            list(&path, is_deep, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

/// The files that links name: `](target)` without scheme and without the fragment.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let files = links.map(|target| target.split('#').next().unwrap_or_default());
    files.filter(|target| !target.is_empty() && !target.contains(':') && !target.contains(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_files_are_followed() {
        let text = "[a](docs/a.md) [b](https://example.org/x) [c](#here) [d](b.md#part) `f[0](x y)`";
        assert_eq!(targets(text).collect::<Vec<_>>(), ["docs/a.md", "b.md"]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir_all(folder.path().join("docs/adr")).expect("folder");
        std::fs::write(folder.path().join("README.md"), "[x](docs/adr/a.md) [y](docs/gone.md)").expect("written");
        std::fs::write(folder.path().join("docs/adr/a.md"), "[up](../../README.md) [z](b.md)").expect("written");
        assert_eq!(
            check(folder.path()).expect("read"),
            ["README.md: link to `docs/gone.md` leads nowhere", "docs/adr/a.md: link to `b.md` leads nowhere"]
        );
    }
}
