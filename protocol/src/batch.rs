//! Builds one fenced append: records with their links and claims, and the guards that must hold for it to land.

use crate::entry::Entry;
use crate::streams;
use crate::view::{Divergence, View};
use closer_contracts::auth::AuthRecord;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::ArtifactId;
use closer_contracts::record::{
    Claim, ClaimKey, CustodyClass, FencedAppend, Guard, Head, Lane, Link, Reads, Record, StreamId,
};
use closer_contracts::refs::ArtifactRef;
use closer_contracts::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What was decided and is to be appended: the append itself and the typed entries, which the view folds at once.
#[derive(Debug, Default)]
pub struct Decided {
    /// The append; `None` where nothing is to be recorded.
    pub append: Option<FencedAppend>,
    /// The entries, in the order of the append's records, with each record's admission time.
    pub entries: Vec<Entry>,
}

/// An append under construction.
pub(crate) struct Batch<'a> {
    reads: &'a dyn Reads,
    now: &'a Timestamp,
    lane: Lane,
    heads: BTreeMap<StreamId, Option<Head>>,
    claimed: BTreeMap<ClaimKey, Digest>,
    taken: Option<ClaimKey>,
    guarded: BTreeSet<StreamId>,
    guards: Vec<Guard>,
    records: Vec<Record>,
    entries: Vec<Entry>,
    /// The view with the first entries folded onto it, and how many they are.
    folded: (Arc<View>, usize),
}

impl<'a> Batch<'a> {
    pub(crate) fn new(view: &Arc<View>, reads: &'a dyn Reads, now: &'a Timestamp, lane: Lane) -> Self {
        Self {
            reads,
            now,
            lane,
            heads: BTreeMap::new(),
            claimed: BTreeMap::new(),
            taken: None,
            guarded: BTreeSet::new(),
            guards: Vec::new(),
            records: Vec::new(),
            entries: Vec::new(),
            folded: (Arc::clone(view), 0),
        }
    }

    pub(crate) fn now(&self) -> &'a Timestamp {
        self.now
    }

    /// The head of a stream, records of this batch included.
    pub(crate) fn head(&self, stream: &StreamId) -> Option<Head> {
        self.heads.get(stream).copied().unwrap_or_else(|| self.reads.head(stream))
    }

    /// What a key stands for, claims of this batch included.
    pub(crate) fn claimed(&self, key: &ClaimKey) -> Option<Digest> {
        self.claimed.get(key).copied().or_else(|| self.reads.claim(key))
    }

    /// Demands that a stream's head is still what it is now. A stream that this batch continues is guarded by its link.
    pub(crate) fn guard(&mut self, stream: StreamId) {
        if !self.heads.contains_key(&stream) && self.guarded.insert(stream.clone()) {
            let expected = self.reads.head(&stream).map(|head| head.link);
            self.guards.push(Guard::Head { stream, expected });
        }
    }

    /// Adds a record that continues `streams` and makes `claims`; gives its id and body digest.
    pub(crate) fn push(
        &mut self,
        id: &str,
        entry: Entry,
        streams: Vec<StreamId>,
        claims: Vec<(ClaimKey, Digest)>,
    ) -> Result<Digest, Fault> {
        self.push_in(CustodyClass::Open, id, entry, streams, claims)
    }

    /// As [`Batch::push`], for a body that only this class of readers may read.
    pub(crate) fn push_in(
        &mut self,
        custody: CustodyClass,
        id: &str,
        entry: Entry,
        streams: Vec<StreamId>,
        claims: Vec<(ClaimKey, Digest)>,
    ) -> Result<Digest, Fault> {
        let body = entry.bytes()?;
        let body_digest = Digest::of(&body);
        self.record(custody, id, entry, (body, body_digest), streams, claims);
        Ok(body_digest)
    }

    fn record(
        &mut self,
        custody: CustodyClass,
        id: &str,
        entry: Entry,
        (body, body_digest): (Arc<[u8]>, Digest),
        streams: Vec<StreamId>,
        claims: Vec<(ClaimKey, Digest)>,
    ) {
        let mut record = Record {
            kind: entry.kind(),
            id: id.to_owned(),
            admitted_at: self.now.clone(),
            custody,
            links: Vec::with_capacity(streams.len()),
            claims: Vec::with_capacity(claims.len()),
            body_digest,
            body: Some(body),
        };
        let digest = record.digest();
        let mut linked = BTreeSet::new();
        for stream in streams {
            if !linked.insert(stream.clone()) {
                continue;
            }
            let link = Link::after(stream.clone(), self.head(&stream));
            self.heads.insert(stream, Some(link.head(digest)));
            record.links.push(link);
        }
        for (key, digest) in claims {
            if self.claimed(&key).is_some_and(|known| known != digest) {
                self.taken.get_or_insert_with(|| key.clone());
            }
            self.guards.push(Guard::Claim { key: key.clone(), allowed: Some(digest) });
            if self.claimed.insert(key.clone(), digest).is_none() {
                record.claims.push(Claim { key, digest });
            }
        }
        self.records.push(record);
        self.entries.push(entry);
    }

    /// Adds an artifact with its claim; gives the reference to it.
    pub(crate) fn artifact(
        &mut self,
        body: impl Into<crate::entry::ArtifactBody>,
        streams: Vec<StreamId>,
    ) -> Result<ArtifactRef, Fault> {
        self.artifact_in(CustodyClass::Open, body, streams)
    }

    /// As [`Batch::artifact`], for one that only this class of readers may read.
    pub(crate) fn artifact_in(
        &mut self,
        custody: CustodyClass,
        body: impl Into<crate::entry::ArtifactBody>,
        streams: Vec<StreamId>,
    ) -> Result<ArtifactRef, Fault> {
        let body = body.into();
        let id = body.id();
        let kind = body.kind();
        let entry = Entry::Artifact(Arc::new(body));
        let bytes = entry.bytes()?;
        let digest = Digest::of(&bytes);
        let claim = (streams::artifact_claim(kind, id.as_str()), digest);
        self.record(custody, &format!("{kind}/{id}"), entry, (bytes, digest), streams, vec![claim]);
        Ok(ArtifactRef { id, digest })
    }

    /// Adds the detached authentication of what was pushed before it; gives the reference to it.
    pub(crate) fn auth(&mut self, auth: &AuthRecord) -> Result<ArtifactRef, Fault> {
        let id = crate::derived_id("auth", auth.subject_id.as_str());
        let digest = self.push(&id, Entry::Auth(auth.clone()), Vec::new(), Vec::new())?;
        Ok(ArtifactRef { id: ArtifactId::new(id), digest })
    }

    /// The first key that a record of this batch would take and that stands for something else. Such a batch can never
    /// land, however often it is decided again.
    pub(crate) const fn taken(&self) -> Option<&ClaimKey> {
        self.taken.as_ref()
    }

    /// The view with every entry so far folded onto it. What was folded before is not folded again.
    pub(crate) fn folded(&mut self) -> Result<Arc<View>, Divergence> {
        let (view, count) = &mut self.folded;
        if *count < self.entries.len() {
            let view = Arc::make_mut(view);
            self.entries.iter().skip(*count).try_for_each(|entry| view.fold(entry, self.now))?;
            *count = self.entries.len();
        }
        Ok(Arc::clone(view))
    }

    /// The entries so far.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn finish(self) -> Decided {
        let append = (!self.records.is_empty()).then_some(FencedAppend {
            lane: self.lane,
            guards: self.guards,
            records: self.records,
        });
        Decided { append, entries: self.entries }
    }
}
