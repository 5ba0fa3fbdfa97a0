//! What stands around every page.

use super::shown::Shown;
use super::visit::Visit;
use crate::http::Door;
use crate::request;
use crate::space::Space;

/// What stands around a page.
pub(super) struct Frame {
    pub(super) title: Shown,
    pub(super) here: &'static str,
    pub(super) who: Shown,
    pub(super) waiting: usize,
    /// What is said of a mode in which not every call is governed.
    pub(super) mode: Option<Shown>,
    pub(super) csrf: String,
    pub(super) may_stop: bool,
    pub(super) stop_query: Shown,
    /// Whether the page says when something changed.
    pub(super) live: bool,
}

impl Frame {
    pub(super) fn new(door: &Door, visit: &Visit, title: impl Into<Shown>, here: &'static str) -> Self {
        let view = door.space.view();
        let issuer = door.settings.restricts_as(visit.identity());
        Self {
            title: title.into(),
            here,
            who: visit.identity().as_str().into(),
            waiting: request::waiting(&view),
            mode: request::banner(&view, &door.space.moment()).map(Shown::from),
            csrf: visit.csrf(),
            may_stop: view.state.appointment(&issuer).is_some() || view.state.is_user(&issuer),
            stop_query: Shown::default(),
            live: true,
        }
    }
}
