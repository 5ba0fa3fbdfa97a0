//! A message and its shapes.

use crate::deployment::Shape;
use closer_contracts::time::Timestamp;
use serde_json::{Value, json};
use std::fmt::Write;

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// Something new waits.
    New,
    /// Something is overdue.
    Overdue,
    /// Something still waits.
    Reminder,
}

/// One packet as a message tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) packet_id: String,
    pub(super) question: String,
    pub(super) deadline: Option<Timestamp>,
    pub(super) consequence: String,
    pub(super) overdue: bool,
    pub(super) link: String,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) about: About,
    pub(super) entries: Vec<Entry>,
    /// How many there are, also where not all are listed.
    pub(super) total: usize,
    /// Which of several like it this is, where there are several.
    pub(super) round: String,
}

impl Entry {
    fn due(&self) -> String {
        match (&self.deadline, self.overdue) {
            (Some(at), true) => format!("overdue since {}", at.as_str()),
            (Some(at), false) => format!("answer by {}", at.as_str()),
            (None, _) => "no deadline".to_owned(),
        }
    }
}

impl Message {
    pub(super) fn new(about: About, entries: Vec<Entry>, total: usize) -> Self {
        Self { about, entries, total, round: String::new() }
    }

    /// The same message has the same key, so that whoever gets it twice can tell.
    pub(super) fn key(&self) -> String {
        let about = match self.about {
            About::New => "new",
            About::Overdue => "overdue",
            About::Reminder => "reminder",
        };
        let ids: Vec<&str> = self.entries.iter().map(|entry| entry.packet_id.as_str()).collect();
        let key: String =
            crate::access::digest(&format!("{}\n{}", self.round, ids.join("\n"))).chars().take(24).collect();
        format!("{about}-{key}")
    }

    /// One line that says what it is about.
    pub(super) fn subject(&self) -> String {
        match (self.about, self.entries.as_slice()) {
            (About::New, [one]) => format!("The Bench: {}", one.question),
            (About::New, _) => format!("The Bench: {} new questions", self.total),
            (About::Overdue, [one, ..]) => format!("Overdue on The Bench: {}", one.question),
            (About::Overdue, []) => "Overdue on The Bench".to_owned(),
            (About::Reminder, _) => format!("Still waiting on The Bench: {}", self.total),
        }
    }

    /// The message as plain text. Following a link answers nothing.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "{}\n  {}\n  Unanswered: {}\n  Look at it and answer: {}\n\n",
                entry.question,
                entry.due(),
                entry.consequence,
                entry.link
            );
        }
        if self.total > self.entries.len() {
            let _ = writeln!(text, "{} of {} are listed here.", self.entries.len(), self.total);
        }
        text
    }

    /// The message in a shape that a web address takes.
    pub(super) fn shaped(&self, shape: Shape) -> Value {
        match shape {
            Shape::Json => {
                let entries = self.entries.iter().map(|entry| {
                    json!({
                        "packet_id": entry.packet_id, "question": entry.question, "deadline": entry.deadline,
                        "consequence": entry.consequence, "overdue": entry.overdue, "link": entry.link,
                    })
                });
                let entries: Vec<Value> = entries.collect();
                json!({ "key": self.key(), "subject": self.subject(), "total": self.total, "packets": entries })
            }
            Shape::Slack => {
                let blocks = self.entries.iter().flat_map(|entry| {
                    let text = format!("{}\n{}. Unanswered: {}", entry.question, entry.due(), entry.consequence);
                    [
                        json!({ "type": "section", "text": { "type": "plain_text", "emoji": false, "text": cut(&text, 3_000) } }),
                        json!({ "type": "actions", "elements": [{
                            "type": "button", "text": { "type": "plain_text", "text": "Look at it" }, "url": entry.link,
                        }] }),
                    ]
                });
                let blocks: Vec<Value> = blocks.take(50).collect();
                json!({ "text": slack_escaped(&self.subject()), "blocks": blocks })
            }
            Shape::Teams => {
                let mut body = vec![
                    json!({ "type": "TextBlock", "weight": "bolder", "wrap": true, "text": marked(&self.subject()) }),
                ];
                body.extend(self.entries.iter().map(|entry| {
                    let text = format!("{}. {}. Unanswered: {}", entry.question, entry.due(), entry.consequence);
                    json!({ "type": "TextBlock", "wrap": true, "text": marked(&text) })
                }));
                let actions: Vec<Value> = self
                    .entries
                    .iter()
                    .take(6)
                    .map(|entry| json!({ "type": "Action.OpenUrl", "title": cut(&entry.question, 60), "url": entry.link }))
                    .collect();
                json!({
                    "type": "message",
                    "attachments": [{
                        "contentType": "application/vnd.microsoft.card.adaptive",
                        "content": {
                            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard",
                            "version": "1.4", "body": body, "actions": actions,
                        },
                    }],
                })
            }
        }
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most.saturating_sub(1)).chain("…".chars()).collect(),
        false => text.to_owned(),
    }
}

/// Text in which nothing is a mention, a link or markup of Slack's.
fn slack_escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text in which nothing is Markdown, which a card's text would be read as.
fn marked(text: &str) -> String {
    text.chars().fold(String::new(), |mut marked, character| {
        if matches!(character, '\\' | '*' | '_' | '[' | ']' | '(' | ')' | '<' | '>' | '`' | '#' | '!' | '~' | '|') {
            marked.push('\\');
        }
        marked.push(character);
        marked
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        let entry = Entry {
            packet_id: "decision-1".to_owned(),
            question: "May it <!channel> [click](https://evil.example)?".to_owned(),
            deadline: Some(Timestamp::from_unix_ms(0)),
            consequence: "nothing is permitted".to_owned(),
            overdue: false,
            link: "https://closer.example/packets/decision-1".to_owned(),
        };
        Message::new(About::New, vec![entry], 1)
    }

    #[test]
    fn every_shape_says_what_is_asked_until_when_and_where() {
        for shape in [Shape::Json, Shape::Slack, Shape::Teams] {
            let text = message().shaped(shape).to_string();
            for told in [
                "May it",
                "1970-01-01T00:00:00.000Z",
                "https://closer.example/packets/decision-1",
                "nothing is permitted",
            ] {
                assert!(text.contains(told), "{shape:?} lacks {told}: {text}");
            }
        }
        assert!(message().text().contains("answer by 1970-01-01T00:00:00.000Z"));
    }

    #[test]
    fn what_an_agent_wrote_is_no_markup_of_the_channel() {
        assert!(message().shaped(Shape::Slack)["text"].as_str().unwrap().contains("&lt;!channel&gt;"));
        let teams = message().shaped(Shape::Teams);
        let text = teams.pointer("/attachments/0/content/body/0/text").unwrap().as_str().unwrap();
        assert!(text.contains("\\[click\\]\\("), "{text}");
    }
}
