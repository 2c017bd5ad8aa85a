//! Commands, from the publish to the proof.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use futures::future::{self, BoxFuture};
use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep_until};
use toolgate_home::{
    Command, CommandOutcome, CommandProof, Device, DeviceId, DeviceStatus, LastState, ProofStep,
    ReadingSource,
};

use super::{Inner, missing};
use crate::api::Function;
use crate::device::{amount, class, device, level, locked, switched};
use crate::node::Node;
use crate::payload;
use crate::plan::{Plan, plan};
use crate::state::{Now, PendingCommand, State};
use crate::value::NodeId;

pub(super) struct Prepared<'a> {
    inner: &'a Inner,
    node: NodeId,
    pub(super) plan: Plan,
    pub(super) topic: String,
    pub(super) asleep: bool,
    number: u64,
}

impl Drop for Prepared<'_> {
    /// Also when nobody waits for the outcome any longer.
    fn drop(&mut self) {
        self.inner
            .state()
            .watched
            .retain(|one| one.number != self.number);
    }
}

impl Inner {
    pub(super) fn busy(&self, device: DeviceId) -> Arc<tokio::sync::Mutex<()>> {
        let mut busy = self.busy.lock();
        busy.retain(|_, one| Arc::strong_count(one) > 1);
        Arc::clone(busy.entry(device).or_default())
    }

    /// Decides all that can be decided before anything is sent. The watch begins before the publish: the proof may be
    /// faster than the broker's word.
    pub(super) fn prepare(
        &self,
        device: &Device,
        command: &Command,
    ) -> Result<Prepared<'_>, CommandOutcome> {
        let mut state = self.state();
        if let Some(reason) = missing(&state, &self.settings.prefix) {
            return Err(CommandOutcome::Offline { reason });
        }
        let refused = |reason| CommandOutcome::Refused { reason };
        let node = NodeId::try_from(device.id).ok();
        let Some(node) = node.and_then(|id| state.nodes.get(&id)) else {
            return Err(refused(format!("'{}' is not there any more.", device.name)));
        };
        let plan = plan(node, command).map_err(refused)?;
        if node.status == DeviceStatus::Dead {
            return Err(CommandOutcome::Dead {
                last: last(node, &plan),
            });
        }
        let topic = state.set_topic(node, &plan.target).map_err(refused)?;
        let number = self.next_watch.fetch_add(1, Ordering::Relaxed);
        let (node, asleep) = (node.id, node.status == DeviceStatus::Asleep);
        state.watched.push(PendingCommand {
            number,
            node,
            current: plan.current.clone(),
            target: plan.target.clone(),
            proof: CommandProof::new(plan.wanted, Instant::now(), self.settings.command_timeout),
        });
        Ok(Prepared {
            inner: self,
            node,
            plan,
            topic,
            asleep,
            number,
        })
    }
}

impl Prepared<'_> {
    pub(super) async fn follow(&self, doubt: Option<String>) -> CommandOutcome {
        let mut changes = self.inner.changes.subscribe();
        let mut asking: BoxFuture<'_, Option<Json>> = Box::pin(future::pending());
        loop {
            changes.borrow_and_update();
            let step = find(&mut self.inner.state(), self.number)
                .map_or(ProofStep::Over, |watched| {
                    watched.proof.step(Instant::now())
                });
            let until = match step {
                ProofStep::Done => {
                    return CommandOutcome::Done {
                        state: self.last().state,
                    };
                }
                ProofStep::Contrary(value) => return self.contrary(&value),
                ProofStep::Dead => return CommandOutcome::Dead { last: self.last() },
                ProofStep::Asleep => return CommandOutcome::Asleep { last: self.last() },
                ProofStep::Over => return self.unknown(doubt),
                ProofStep::Ask => {
                    asking = Box::pin(self.read());
                    continue;
                }
                ProofStep::Wait(until) => until,
            };
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep_until(until) => {}
                value = &mut asking => {
                    asking = Box::pin(future::pending());
                    if let Some(value) = value {
                        self.take_answer(value);
                    }
                }
            }
        }
    }

    /// Lets the gateway read the device: one short message on the air.
    async fn read(&self) -> Option<Json> {
        let id = &self.plan.current;
        let mut value = json!({
            "nodeId": self.node,
            "commandClass": id.command_class,
            "endpoint": id.endpoint,
            "property": id.property,
        });
        if let Some(key) = &id.key {
            // Keys that are numbers are numbers to the gateway.
            value["propertyKey"] = key
                .parse::<u64>()
                .map_or_else(|_| json!(key), |key| json!(key));
        }
        let answer = self
            .inner
            .ask::<Json>(Function::PollValue, &json!([value]))
            .await;
        answer.ok().flatten().as_ref().and_then(payload::keep)
    }

    fn take_answer(&self, answer: Json) {
        let now = Now::read();
        let mut state = self.inner.state();
        if let Some(watched) = find(&mut state, self.number) {
            watched.proof.take_answer(&answer, now.instant);
        }
        let value = state
            .nodes
            .get_mut(&self.node)
            .and_then(|node| node.values.get_mut(&self.plan.current));
        if let Some(value) = value {
            value.value = Some(answer);
            value.updated = Some(now.wall);
            value.source = ReadingSource::Report;
        }
    }

    pub(super) fn last(&self) -> LastState {
        match self.inner.state().nodes.get(&self.node) {
            Some(node) => last(node, &self.plan),
            None => LastState {
                state: "unknown".to_owned(),
                at: None,
            },
        }
    }

    fn name(&self) -> String {
        let state = self.inner.state();
        state
            .nodes
            .get(&self.node)
            .map_or_else(String::new, Node::title)
    }

    fn contrary(&self, value: &Json) -> CommandOutcome {
        let words = match self.plan.current.command_class {
            class::SWITCH => switched(value),
            class::DIMMER => level(value),
            class::LOCK => locked(value),
            _ => value.as_f64().map(|number| amount(number, None)),
        };
        let words = words.unwrap_or_else(|| value.to_string());
        CommandOutcome::Refused {
            reason: format!(
                "'{}' was told, but did not do it: it reports {words}.",
                self.name()
            ),
        }
    }

    fn unknown(&self, doubt: Option<String>) -> CommandOutcome {
        let seconds = self.inner.settings.command_timeout.as_secs_f64();
        let reason = doubt.unwrap_or_else(|| {
            format!(
                "The command was sent once, and '{}' did not confirm it within {seconds} s.",
                self.name()
            )
        });
        CommandOutcome::Unknown {
            reason,
            last: self.last(),
        }
    }
}

fn find(state: &mut State, number: u64) -> Option<&mut PendingCommand> {
    state.watched.iter_mut().find(|one| one.number == number)
}

fn last(node: &Node, plan: &Plan) -> LastState {
    let updated = node
        .values
        .get(&plan.current)
        .and_then(|value| value.updated);
    LastState {
        state: device(node, false).state,
        at: updated.and_then(|at| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(at))),
    }
}
