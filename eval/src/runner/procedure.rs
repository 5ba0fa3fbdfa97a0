//! One arm's procedure in one world: its stages asked one after another, each call in the accounts before the next.

use super::pair::{self, Invalid};
use super::{Planned, RunError, Study, arm_of};
use crate::accounts::{Attempt, AttemptEnd, Call, Cause, Entry, World};
use crate::participant::{self, Participant};
use crate::plan::Plan;
use crate::procedure::{self, DeclaredArm, Stage};
use crate::world::OneWorld;
use closer_contracts::id::Key;
use closer_contracts::work::{Work, WorkResult};
use std::time::Instant;

/// The arm of a world.
pub(super) fn declared(plan: &Plan, world: World) -> Option<&DeclaredArm> {
    let [a, b] = &plan.procedures.as_ref()?.arms;
    Some(match world {
        World::A => a,
        World::B => b,
    })
}

/// The participant of a world's arm.
pub(super) fn participant(plan: &Plan, world: World) -> Option<&Participant> {
    declared(plan, world)?.participant.as_ref()
}

/// Asks every stage that has not answered yet; the last one's answer goes to the finalizer.
pub(super) fn carry_out(
    study: &Study<'_>,
    planned: &Planned<'_>,
    world: OneWorld,
    attempt: &Attempt,
) -> Result<(AttemptEnd, Result<(), Invalid>), RunError> {
    let began = Instant::now();
    let wall_ms = |began: Instant| Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
    let stages = declared(study.plan, attempt.world).map(|arm| arm.stages.as_slice()).unwrap_or_default();
    let (mut earlier, mut newest): (Vec<(Key, WorkResult)>, _) = (Vec::new(), None);
    for (number, stage) in (1..).zip(stages) {
        let packet = match procedure::packet(world.work(), stage, &earlier) {
            Ok(packet) => packet,
            Err(fault) => {
                let invalid = (Cause::SpaceBroken, fault.to_string());
                return Ok((AttemptEnd { wall_ms: wall_ms(began), ..pair::ended(&invalid) }, Err(invalid)));
            }
        };
        match stage_answered(study, planned, attempt, number, stage, &packet)? {
            Ok((answered, kept)) => {
                earlier.push((stage.role.clone(), answered.result));
                newest = Some(kept);
            }
            Err((invalid, answer)) => {
                let end = AttemptEnd { answer, wall_ms: wall_ms(began), ..pair::ended(&invalid) };
                return Ok((end, Err(invalid)));
            }
        }
    }
    let Some((_, last)) = earlier.pop() else {
        let invalid = (Cause::NoAnswer, "the procedure has no stages".to_owned());
        return Ok((pair::ended(&invalid), Err(invalid)));
    };
    let became = pair::finalized(study, world, last)?;
    let told = |end| AttemptEnd { answer: newest, wall_ms: wall_ms(began), ..end };
    Ok(match became {
        Ok(outcome) => (told(AttemptEnd { cause: None, outcome: Some(outcome), ..AttemptEnd::interrupted() }), Ok(())),
        Err(invalid) => (told(pair::ended(&invalid)), Err(invalid)),
    })
}

/// What a stage answered before the study's process ended, or what it answers now.
fn stage_answered(
    study: &Study<'_>,
    planned: &Planned<'_>,
    attempt: &Attempt,
    number: u32,
    stage: &Stage,
    packet: &Work,
) -> Result<pair::KeptAnswer, RunError> {
    let known = study.accounts().pairs().get(&planned.pair).and_then(|record| record.answered(attempt, number));
    if let Some(known) = known {
        return Ok(Ok((study.artifacts.get(known)?, known)));
    }
    if pair::used_up(study, planned.kind, attempt.world) {
        let reason = format!("the arm has taken what its vector allows before stage {number}");
        return Ok(Err(((Cause::ResourcesUsedUp, reason), None)));
    }
    let handed = study.artifacts.keep(packet)?;
    let launch = match attempt.world {
        World::A => &study.arms[0],
        World::B => &study.arms[1],
    };
    let asked_of = participant(study.plan, attempt.world).unwrap_or(&study.plan.participant);
    let drawn = pair::seed(study, planned, &format!("{}.{number}", attempt.world), attempt.repeat);
    let asked = participant::ask(asked_of, launch, packet, drawn);
    let became = pair::answered(study, &asked, packet)?;
    let end = match &became {
        Ok((answered, kept)) => {
            AttemptEnd { cause: None, answer: Some(*kept), usage: answered.usage.clone(), ..AttemptEnd::interrupted() }
        }
        Err((invalid, answer)) => AttemptEnd { answer: *answer, ..pair::ended(invalid) },
    };
    let end = AttemptEnd { wall_ms: Some(asked.wall_ms), process: asked.process, ..end };
    {
        let mut taken = study.taken();
        taken.entry(arm_of(planned.kind, attempt.world)).or_default().add(end.usage.as_ref(), end.wall_ms);
    }
    study.accounts().enter(Entry::Called(Box::new(Call {
        attempt: attempt.clone(),
        stage: number,
        role: stage.role.clone(),
        coordinates: stage.coordinates,
        packet: handed,
        end,
    })))?;
    Ok(became)
}
