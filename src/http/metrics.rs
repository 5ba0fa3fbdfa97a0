//! Figures for operators, in Prometheus' text format: what came in, and how the space stands.

use super::door::Door;
use crate::request;
use crate::space::Space;
use axum::http::StatusCode;
use closer_contracts::item::{Item, ItemKind};
use closer_protocol::View;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The upper bounds of the durations that are told apart, in seconds.
const BOUNDS: [f64; 6] = [0.002, 0.01, 0.05, 0.25, 1.0, 5.0];

#[derive(Default)]
struct Durations {
    within: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

#[derive(Default)]
struct Inside {
    requests: BTreeMap<(String, u16), u64>,
    durations: BTreeMap<String, Durations>,
}

/// What came in since the process began.
#[derive(Default)]
pub(super) struct Counts {
    inside: Mutex<Inside>,
}

impl Counts {
    /// Counts one request; `route` is the table's path, so that nobody from outside makes new names.
    pub(super) fn count(&self, route: &str, status: StatusCode, took: Duration) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        *inside.requests.entry((route.to_owned(), status.as_u16())).or_default() += 1;
        let durations = inside.durations.entry(route.to_owned()).or_default();
        let seconds = took.as_secs_f64();
        for (bound, within) in BOUNDS.iter().zip(durations.within.iter_mut()) {
            *within += u64::from(seconds <= *bound);
        }
        durations.count += 1;
        durations.sum += seconds;
    }
}

/// The page.
pub(super) fn page(door: &Door) -> String {
    let mut text = Text::default();
    {
        let inside = door.counts.inside.lock().unwrap_or_else(PoisonError::into_inner);
        text.head("closer_http_requests_total", "counter", "Requests by route and status.");
        for ((route, status), count) in &inside.requests {
            text.line("closer_http_requests_total", &format!("route=\"{route}\",status=\"{status}\""), count);
        }
        text.head("closer_http_request_duration_seconds", "histogram", "How long requests took.");
        for (route, durations) in &inside.durations {
            for (bound, within) in BOUNDS.iter().zip(&durations.within) {
                text.line(
                    "closer_http_request_duration_seconds_bucket",
                    &format!("route=\"{route}\",le=\"{bound}\""),
                    within,
                );
            }
            let name = "closer_http_request_duration_seconds";
            text.line(&format!("{name}_bucket"), &format!("route=\"{route}\",le=\"+Inf\""), durations.count);
            text.line(&format!("{name}_sum"), &format!("route=\"{route}\""), durations.sum);
            text.line(&format!("{name}_count"), &format!("route=\"{route}\""), durations.count);
        }
    }
    let open = door.settings.streams_max.saturating_sub(door.streams.available_permits());
    text.one("closer_http_streams_open", "gauge", "Streams of changes that are open.", open);
    space(&door.space.view(), &mut text);
    let durable = door.space.log().durable().0;
    text.one("closer_log_records", "gauge", "Records that are durable.", durable);
    text.0
}

fn space(view: &View, text: &mut Text) {
    let mut by_status: BTreeMap<&'static str, u64> = BTreeMap::new();
    for accepted in view.state.items(ItemKind::Obligation) {
        if let Item::Obligation(obligation) = &accepted.item {
            *by_status.entry(obligation.status.as_str()).or_default() += 1;
        }
    }
    text.head("closer_obligations", "gauge", "Obligations by status.");
    for (status, count) in by_status {
        text.line("closer_obligations", &format!("status=\"{status}\""), count);
    }
    let waiting = request::waiting(view);
    text.one("closer_packets_waiting", "gauge", "Packets on The Bench that wait for an answer.", waiting);
    text.one("closer_state_version", "gauge", "The version of the accepted state.", view.state.reference().version);
    text.one("closer_episodes_under_way", "gauge", "Episodes under way.", view.under_way.len());
    text.one("closer_attempts_unsettled", "gauge", "Attempts whose effect is not settled.", view.unsettled.len());
    let restrictions = view.state.restrictions_in_force().count();
    text.one("closer_restrictions_in_force", "gauge", "Restrictions in force.", restrictions);
    let outstanding = view.outstanding.len();
    text.one("closer_restrictions_outstanding", "gauge", "Restrictions that await reconciliation.", outstanding);
    text.one("closer_refusals_total", "counter", "Refusals on record.", view.refusals);
    text.one("closer_unreadable_total", "counter", "Inputs that could not be read or authenticated.", view.unreadable);
}

/// Lines of the format.
#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{name}{{{labels}}} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, kind, help);
        let _ = writeln!(self.0, "{name} {value}");
    }
}
