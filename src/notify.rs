//! Telling people that something waits on The Bench: what is asked, until when, and where to answer. No message answers
//! anything, and none holds a secret.
//!
//! Each packet is announced once by each channel, an overdue one is escalated once, and what still waits is reminded of in
//! one message. What was told is written down after it was delivered; a message repeated after a crash has the same key.

mod letter;
mod message;
mod send;

use crate::deployment::{Notify, Quiet};
use crate::error::Error;
use crate::request;
use crate::space::{Running, Space};
use closer_contracts::branch;
use closer_contracts::briefcase::PacketStatus;
use closer_contracts::time::Timestamp;
use closer_protocol::View;
use message::{About, Entry, Message};
use send::Sender;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The name of the file in a store's folder.
const FILE: &str = "told.json";
/// How often it is looked whether a reminder is due or a delivery is to be tried again.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The least time between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// The most packets that one message lists; it says how many there are.
const LISTED_MAX: usize = 20;

/// What one channel has told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    announced: BTreeSet<String>,
    escalated: BTreeSet<String>,
    reminded_at: Option<Timestamp>,
}

/// Whoever tells.
pub struct Notifier {
    path: PathBuf,
    origin: String,
    remind_every_ms: u64,
    quiet: Vec<Quiet>,
    senders: Vec<Sender>,
    told: BTreeMap<String, Told>,
}

impl std::fmt::Debug for Notifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notifier").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Notifier {
    /// Opens every channel; what was told before is read from the store's folder.
    ///
    /// # Errors
    /// A channel whose address or secret cannot be used.
    pub fn open(declared: &Notify, store: &Path, origin: &str) -> Result<Self, Error> {
        let senders = declared.channels.iter().map(|channel| Sender::open(channel, declared.smtp.as_ref()));
        let senders = senders.collect::<Result<Vec<_>, _>>()?;
        let path = store.join(FILE);
        let told = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let (remind_every_ms, quiet) = (declared.remind_every_ms, declared.quiet.clone());
        Ok(Self { path, origin: origin.to_owned(), remind_every_ms, quiet, senders, told })
    }

    /// Tells, for as long as it is let.
    pub async fn run(mut self, space: Arc<Running>) {
        if self.senders.is_empty() {
            return;
        }
        let mut views = space.handle().subscribe();
        loop {
            let view = Arc::clone(&views.borrow_and_update());
            self.look(&view, &space.moment().now).await;
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                changed = views.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Tells whatever is due now.
    async fn look(&mut self, view: &View, now: &Timestamp) {
        let waiting = waiting(view, &self.origin);
        for sender in &self.senders {
            let told = self.told.entry(sender.name()).or_default();
            let before = told.clone();
            for message in due(&waiting, told, now, self.remind_every_ms, &self.quiet) {
                match sender.send(&message).await {
                    Ok(()) => note(told, &message, now),
                    Err(reason) => tracing::warn!(channel = sender.name(), reason, "a message was not delivered"),
                }
            }
            // What no longer waits is not kept for ever.
            let waits: BTreeSet<&str> = waiting.iter().map(|entry| entry.packet_id.as_str()).collect();
            told.announced.retain(|id| waits.contains(id.as_str()));
            told.escalated.retain(|id| waits.contains(id.as_str()));
            if *told != before
                && let Err(error) = write(&self.path, &self.told)
            {
                tracing::warn!(%error, "what was told could not be written down");
            }
        }
    }
}

/// What waits for an answer, the earliest deadline first.
fn waiting(view: &View, origin: &str) -> Vec<Entry> {
    let waits = view.packets.iter().filter(|(_, packet)| request::is_waiting(packet));
    let entry = |(id, packet): (&closer_contracts::id::DecisionId, &closer_protocol::view::Packet)| Entry {
        packet_id: id.to_string(),
        question: crate::visible::visible(packet.packet.body.question.as_str(), false),
        deadline: packet.packet.body.deadline.clone(),
        consequence: crate::visible::visible(packet.packet.body.while_waiting.consequence.as_str(), false),
        overdue: packet.status == PacketStatus::Overdue,
        link: format!("{origin}/packets/{id}"),
    };
    let mut waiting: Vec<Entry> = waits.map(entry).collect();
    waiting.sort_by_key(|entry| entry.deadline.as_ref().map_or(i64::MAX, Timestamp::unix_ms));
    waiting
}

/// What is to be told: whatever is new, whatever is overdue, and at times whatever still waits. A reminder never stands in for
/// what is new or overdue. In quiet hours a reminder waits until they are over; nothing else does, and no deadline moves.
fn due(waiting: &[Entry], told: &Told, now: &Timestamp, remind_every_ms: u64, quiet: &[Quiet]) -> Vec<Message> {
    let (mut messages, mut still) = (Vec::new(), Vec::new());
    let mut fresh = Vec::new();
    for entry in waiting {
        if entry.overdue && !told.escalated.contains(&entry.packet_id) {
            messages.push(Message::new(About::Overdue, vec![entry.clone()], 1));
        } else if !told.announced.contains(&entry.packet_id) && !entry.overdue {
            fresh.push(entry.clone());
        } else {
            still.push(entry.clone());
        }
    }
    let list = |about: About, entries: Vec<Entry>| {
        let total = entries.len();
        Message::new(about, entries.into_iter().take(LISTED_MAX).collect(), total)
    };
    // Many at once come in one message; each of them is in it.
    messages.extend(fresh.chunks(LISTED_MAX).map(|chunk| list(About::New, chunk.to_vec())));
    let last = told.reminded_at.as_ref();
    let last = last.filter(|at| branch!("notify.reminder_due", *now >= at.plus_ms(remind_every_ms)));
    let last = last.filter(|_| !branch!("notify.quiet_now", quiet.iter().any(|quiet| quiet.covers(now))));
    if let Some(last) = last.filter(|_| !still.is_empty()) {
        messages.push(Message { round: last.as_str().to_owned(), ..list(About::Reminder, still) });
    }
    messages
}

/// Notes what was delivered.
fn note(told: &mut Told, message: &Message, now: &Timestamp) {
    let ids = message.entries.iter().map(|entry| entry.packet_id.clone());
    match message.about {
        About::New => told.announced.extend(ids),
        About::Overdue => {
            told.escalated.extend(ids.clone());
            told.announced.extend(ids);
        }
        About::Reminder => {}
    }
    told.reminded_at = Some(now.clone());
}

fn write(path: &Path, told: &BTreeMap<String, Told>) -> Result<(), Error> {
    use std::os::unix::fs::OpenOptionsExt;
    let writing = || Error::io(format!("writing {}", path.display()));
    let text = serde_json::to_vec(told).map_err(|error| Error::World(error.to_string()))?;
    let beside = path.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(&beside).map_err(writing())?;
    std::io::Write::write_all(&mut file, &text).map_err(writing())?;
    file.sync_all().map_err(writing())?;
    std::fs::rename(&beside, path).map_err(writing())
}

#[cfg(test)]
mod tests {
    use super::*;
    use closer_contracts::shows;

    fn entry(id: &str, overdue: bool) -> Entry {
        Entry {
            packet_id: id.to_owned(),
            question: "May it?".to_owned(),
            deadline: None,
            consequence: "nothing is permitted".to_owned(),
            overdue,
            link: format!("https://closer.example/packets/{id}"),
        }
    }

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_unix_ms(1_700_000_000_000 + hour * 3_600_000)
    }

    const DAY_MS: u64 = 24 * 3_600_000;

    fn told(messages: &[Message]) -> Vec<(About, Vec<&str>)> {
        let told = messages.iter().map(|message| {
            let ids = message.entries.iter().map(|entry| entry.packet_id.as_str());
            (message.about, ids.collect())
        });
        told.collect()
    }

    #[test]
    fn each_packet_is_announced_once_escalated_once_and_then_reminded_of() {
        let mut known = Told::default();
        let waiting = [entry("a", false), entry("b", false)];
        let first = due(&waiting, &known, &at(0), DAY_MS, &[]);
        assert_eq!(told(&first), [(About::New, vec!["a", "b"])]);
        note(&mut known, &first[0], &at(0));
        assert!(due(&waiting, &known, &at(1), DAY_MS, &[]).is_empty(), "once");
        let later = [entry("a", true), entry("b", false), entry("c", false)];
        let second = due(&later, &known, &at(30), DAY_MS, &[]);
        assert_eq!(told(&second), [(About::Overdue, vec!["a"]), (About::New, vec!["c"]), (About::Reminder, vec!["b"])]);
        second.iter().for_each(|message| note(&mut known, message, &at(30)));
        assert!(due(&later, &known, &at(31), DAY_MS, &[]).is_empty(), "escalated once");
    }

    #[test]
    fn many_reminders_are_one_message_that_waits_until_quiet_hours_are_over() {
        shows!("CP-7.3-23"; by "notify.reminder_due", "notify.quiet_now");
        let ids: Vec<String> = (0..5).map(|n| n.to_string()).collect();
        let waiting: Vec<Entry> = ids.iter().map(|id| entry(id, false)).collect();
        let known = Told { announced: ids.iter().cloned().collect(), reminded_at: Some(at(0)), ..Told::default() };
        assert!(due(&waiting, &known, &at(23), DAY_MS, &[]).is_empty(), "within the window nobody is reminded");
        let reminders = due(&waiting, &known, &at(24), DAY_MS, &[]);
        assert_eq!(told(&reminders), [(About::Reminder, ids.iter().map(String::as_str).collect())], "one lists all");
        // The moments here are at 22:13 and every hour after.
        let quiet = [Quiet::try_from("22:00-07:00".to_owned()).unwrap()];
        assert!(due(&waiting, &known, &at(24), DAY_MS, &quiet).is_empty(), "quiet");
        assert!(due(&waiting, &known, &at(32), DAY_MS, &quiet).is_empty(), "past midnight too");
        assert_eq!(due(&waiting, &known, &at(33), DAY_MS, &quiet).len(), 1, "from 07:13 on");
        let late = [entry("0", true), entry("new", false)];
        let urgent = due(&late, &known, &at(24), DAY_MS, &quiet);
        assert_eq!(told(&urgent), [(About::Overdue, vec!["0"]), (About::New, vec!["new"])], "no deadline moves");
        for wrong in ["22:00", "25:00-07:00", "07:00-07:00", "a-b"] {
            assert!(Quiet::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_reminder_lists_what_waits_and_says_how_much_there_is() {
        let waiting: Vec<Entry> = (0..50).map(|n| entry(&n.to_string(), false)).collect();
        let announced = waiting.iter().map(|entry| entry.packet_id.clone()).collect();
        let known = Told { announced, reminded_at: Some(at(0)), ..Told::default() };
        let reminders = due(&waiting, &known, &at(24), DAY_MS, &[]);
        assert_eq!((reminders.len(), reminders[0].entries.len(), reminders[0].total), (1, LISTED_MAX, 50));
        let fresh = due(&waiting, &Told::default(), &at(24), DAY_MS, &[]);
        assert_eq!(fresh.iter().map(|message| message.entries.len()).sum::<usize>(), 50, "every new one is told");
    }
}
