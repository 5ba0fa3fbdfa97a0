//! Long lists in pages that say how much there is: nobody takes a page for the whole (Appendix B).

use crate::http::problem::Problem;
use serde_json::{Value, json};

/// The most entries of a page.
pub(crate) const LIMIT_MAX: usize = 200;
const LIMIT: usize = 50;

/// Cuts the list called `list` to the page behind the entry whose member `id` is `after`. A cursor names an entry and no
/// place, so that entries which come or go in between neither repeat nor hide others.
pub(super) fn cut(
    mut data: Value,
    list: &str,
    id: &str,
    after: Option<&str>,
    limit: Option<usize>,
) -> Result<Value, Problem> {
    let limit = limit.unwrap_or(LIMIT);
    if limit == 0 || limit > LIMIT_MAX {
        return Err(Problem::unreadable(format!("limit: 1 to {LIMIT_MAX}")));
    }
    let entries = data.get_mut(list).map(Value::take);
    let Some(Value::Array(entries)) = entries else { return Ok(data) };
    let total = entries.len();
    let text = |entry: &Value| entry.get(id).map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
    let begin = match after {
        None => 0,
        Some(after) => match entries.iter().position(|entry| text(entry).as_deref() == Some(after)) {
            Some(found) => found + 1,
            None => return Err(Problem::unreadable("after: this entry is not in the list any more; begin anew")),
        },
    };
    let page: Vec<Value> = entries.into_iter().skip(begin).take(limit).collect();
    let complete = begin + page.len() >= total;
    let next = if complete { None } else { page.last().and_then(text) };
    let told = json!({ "total": total, "before": begin, "count": page.len(), "complete": complete, "next": next });
    if let Some(members) = data.as_object_mut() {
        members.insert(list.to_owned(), Value::Array(page));
        members.insert("page".to_owned(), told);
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use closer_contracts::shows;

    #[test]
    fn the_union_of_the_pages_is_the_list_and_each_says_how_much_there_is() {
        shows!("CP-B-12", "CP-B-13");
        let entries: Vec<Value> = (0..7).map(|n| json!({ "id": format!("o{n}") })).collect();
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let data = json!({ "entries": entries });
            let page = cut(data, "entries", "id", after.as_deref(), Some(3)).unwrap();
            assert_eq!(page["page"]["total"], 7);
            seen.extend(page["entries"].as_array().unwrap().clone());
            let next = page["page"]["next"].as_str().map(str::to_owned);
            assert_eq!(page["page"]["complete"], next.is_none());
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, entries);
    }

    #[test]
    fn a_cursor_that_is_gone_is_an_error_and_no_empty_page() {
        let data = json!({ "entries": [{ "id": "a" }] });
        assert!(cut(data, "entries", "id", Some("b"), None).is_err());
        assert!(cut(json!({ "entries": [] }), "entries", "id", None, Some(0)).is_err());
    }
}
