//! The section `[notify]`: who is told that something waits on The Bench, and by which way.

use super::source::{Misfit, Source};
use closer_contracts::time::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// How a connection to a mail server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Not at all: to a server on this machine alone.
    None,
    /// By STARTTLS, which the server has to offer.
    Starttls,
    /// By TLS from the first byte.
    Tls,
}

/// The mail server that letters are handed to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smtp {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is protected.
    pub protection: Protection,
    /// Whom letters are from.
    pub from: String,
    /// The account, where one is needed.
    pub user: Option<String>,
    /// The file with its password, its owner's alone.
    pub password_file: Option<PathBuf>,
}

/// The shape of a message to a web address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Closer's own: one object with its members.
    Json,
    /// An incoming webhook of Slack.
    Slack,
    /// An incoming webhook of Microsoft Teams: an adaptive card.
    Teams,
}

/// One way to tell somebody.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Channel {
    /// A letter.
    Email {
        /// To whom.
        to: String,
    },
    /// A message to a web address.
    Webhook {
        /// The file with the address, which is a secret in itself; its owner's alone.
        url_file: PathBuf,
        /// The message's shape.
        shape: Shape,
    },
}

/// Who is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    /// The mail server.
    pub smtp: Option<Smtp>,
    /// The ways.
    pub channels: Vec<Channel>,
    /// How long to wait between two reminders of what still waits, in milliseconds.
    pub remind_every_ms: u64,
    /// When nobody is reminded.
    pub quiet: Vec<Quiet>,
}

/// A time of every day, in UTC, in which nobody is reminded. It may pass midnight. What is new or overdue is told all the same,
/// and no deadline moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Quiet {
    from_minute: i64,
    to_minute: i64,
}

const DAY_MINUTES: i64 = 24 * 60;

impl Quiet {
    /// Whether it is quiet at this moment.
    #[must_use]
    pub const fn covers(&self, now: &Timestamp) -> bool {
        let minute = now.unix_ms().div_euclid(60_000).rem_euclid(DAY_MINUTES);
        match self.from_minute <= self.to_minute {
            true => self.from_minute <= minute && minute < self.to_minute,
            false => self.from_minute <= minute || minute < self.to_minute,
        }
    }
}

impl TryFrom<String> for Quiet {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let minute = |text: &str| {
            let (hour, minute) = text.trim().split_once(':')?;
            let (hour, minute) = (hour.parse::<i64>().ok()?, minute.parse::<i64>().ok()?);
            ((0..24).contains(&hour) && (0..60).contains(&minute)).then_some(hour * 60 + minute)
        };
        let sides = text.split_once('-').and_then(|(from, to)| Some((minute(from)?, minute(to)?)));
        match sides.filter(|(from, to)| from != to) {
            Some((from_minute, to_minute)) => Ok(Self { from_minute, to_minute }),
            None => Err(format!("`{text}` is no time of the day; write it like `22:00-07:00`, in UTC")),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Section {
    smtp: Option<Smtp>,
    #[serde(default)]
    channel: Vec<Channel>,
    remind_every_ms: Option<u64>,
    #[serde(default)]
    quiet: Vec<Quiet>,
}

impl Notify {
    /// Reads the section; without one, nobody is told.
    pub(super) fn read(source: &Source, file: &mut Map<String, Value>, directory: &Path) -> Result<Self, Misfit> {
        let section = file.remove("notify").unwrap_or(Value::Object(Map::new()));
        let section: Section = source.typed("notify", section)?;
        let smtp = section
            .smtp
            .map(|smtp| Smtp { password_file: smtp.password_file.map(|file| directory.join(file)), ..smtp });
        let local = ["127.0.0.1", "::1", "localhost"];
        if let Some(smtp) = smtp.as_ref().filter(|smtp| smtp.protection == Protection::None)
            && !local.contains(&smtp.host.as_str())
        {
            return Err(source.misfit("notify.smtp.protection", "unprotected only to a server on this machine"));
        }
        let channels: Vec<Channel> = section
            .channel
            .into_iter()
            .map(|channel| match channel {
                Channel::Webhook { url_file, shape } => Channel::Webhook { url_file: directory.join(url_file), shape },
                Channel::Email { to } => Channel::Email { to },
            })
            .collect();
        if smtp.is_none() && channels.iter().any(|channel| matches!(channel, Channel::Email { .. })) {
            return Err(source.misfit("notify.smtp", "letters need a mail server"));
        }
        let remind_every_ms = section.remind_every_ms.unwrap_or(24 * 3_600_000);
        Ok(Self { smtp, channels, remind_every_ms, quiet: section.quiet })
    }
}
