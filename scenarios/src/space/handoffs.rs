//! Handing responsibilities over: contracts, offers and consents, as their own parties submit them.

use super::{Broken, Space};
use closer_contracts::auth::SigningScope;
use closer_contracts::handoff::{HandoffConsent, Owed, ResponsibilityContract};
use closer_contracts::id::{ActorId, HandoffId};
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole};
use closer_contracts::time::Timestamp;
use closer_protocol::handoff::{self, Terms};
use closer_protocol::input::Reply;

impl Space {
    /// The user writes down what a responsibility takes and what is owed when it is given back; gives the reference to it.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn contract(
        &mut self,
        capabilities: &[&str],
        context: &[&str],
        owed_on_return: &[Owed],
    ) -> Result<ArtifactRef, Broken> {
        let contract = ResponsibilityContract {
            contract_id: self.fresh("contract").as_str().into(),
            capabilities: capabilities.iter().map(|&capability| capability.into()).collect(),
            context: context.iter().map(|&id| id.into()).collect(),
            owed_on_return: owed_on_return.to_vec(),
        };
        let user = ActorRef { actor_id: "user".into(), role: ProducerRole::User };
        match self.submit_artifact(contract, user, SigningScope::ResponsibilityContract)? {
            Reply::Recorded(mut references) => references.pop().ok_or_else(|| Broken::Stuck("no contract".into())),
            Reply::Refused(denials) => Err(Broken::Stuck(format!("{denials:?}"))),
        }
    }

    /// What handing an obligation over takes from whoever answers for it now to a recipient in its first role, on one
    /// contract for both ways.
    ///
    /// # Errors
    /// No such obligation or identity.
    pub fn terms(&mut self, obligation: &str, recipient: &str, contract: &ArtifactRef) -> Result<Terms, Broken> {
        let handoff_id = HandoffId::new(self.fresh("handoff"));
        let held = self.view().ownership(&obligation.into());
        let sender = held.ok_or_else(|| Broken::Stuck(format!("no obligation {obligation}")))?.owner;
        Ok(Terms {
            handoff_id,
            obligation_id: obligation.into(),
            responsibility: "Keeps the obligation.".into(),
            sender: self.in_first_role(&sender)?,
            recipient: self.in_first_role(&recipient.into())?,
            contract_ref: contract.clone(),
            context_refs: Vec::new(),
            lease_expiry: None,
            return_contract_ref: contract.clone(),
        })
    }

    fn in_first_role(&self, actor: &ActorId) -> Result<ActorRef, Broken> {
        let role = self.view().state.identity(actor).and_then(|identity| identity.roles.first().copied());
        let role = role.ok_or_else(|| Broken::Stuck(format!("no identity {actor}")))?;
        Ok(ActorRef { actor_id: actor.clone(), role })
    }

    /// The coordinator offers a handoff on these terms for its sender.
    ///
    /// # Errors
    /// See [`Broken`]; a refusal is a reply.
    pub fn offer(&mut self, terms: Terms) -> Result<Reply, Broken> {
        let payload = handoff::draft(self.view(), terms, &self.moment().now)?;
        self.submit_payload(payload)
    }

    /// What a recipient says when it consents to exactly what was offered.
    ///
    /// # Errors
    /// Nothing was offered under this id.
    pub fn consent_to(&self, handoff_id: &HandoffId) -> Result<HandoffConsent, Broken> {
        let offered = self.view().handoffs.offered(handoff_id);
        let offered = &offered.ok_or_else(|| Broken::Stuck(format!("no handoff {handoff_id}")))?.body;
        Ok(HandoffConsent {
            handoff_ref: offered.handoff_id.clone(),
            recipient_ref: offered.recipient.actor_id.clone(),
            contract_digest: offered.contract_ref.digest,
            ownership_epoch: offered.ownership_epoch,
        })
    }

    /// Somebody submits a consent.
    ///
    /// # Errors
    /// See [`Broken`]; a refusal is a reply.
    pub fn consent(&mut self, consent: HandoffConsent, by: &str) -> Result<Reply, Broken> {
        let producer = self.in_first_role(&by.into())?;
        self.submit_artifact(consent, producer, SigningScope::HandoffConsent)
    }

    /// Whoever answers for an obligation hands it over, and the recipient accepts; gives the new epoch.
    ///
    /// # Errors
    /// See [`Broken`]; a refusal too.
    pub fn transfer(&mut self, obligation: &str, owner: &str, lease_expiry: Option<Timestamp>) -> Result<u64, Broken> {
        let contract = self.contract(&[], &[], &[])?;
        let terms = Terms { lease_expiry, ..self.terms(obligation, owner, &contract)? };
        let handoff_id = terms.handoff_id.clone();
        let offered = self.offer(terms)?;
        if let Some(denial) = offered.refusal() {
            return Err(Broken::Stuck(format!("{denial:?}")));
        }
        let consent = self.consent_to(&handoff_id)?;
        let epoch = consent.ownership_epoch;
        match self.consent(consent, owner)?.refusal() {
            None => Ok(epoch),
            Some(denial) => Err(Broken::Stuck(format!("{denial:?}"))),
        }
    }
}
