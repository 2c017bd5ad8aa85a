//! Carries out a command, from the checks before it is sent to the proof that it worked.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use futures::future::{self, BoxFuture};
use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep_until};
use toolgate_home::{
    CommandConfirmation, CommandOutcome, ConfirmationStep, DeviceCommand, DeviceId, DeviceStatus,
    HomeDevice, LastState, ReadingSource,
};

use super::{HouseState, connection_problem};
use crate::api::ApiFunction;
use crate::command_plan::{CommandPlan, plan_command};
use crate::device::{class, level_state, lock_state, switch_state, to_device, with_unit};
use crate::node::ZwaveNode;
use crate::payload;
use crate::state::{HomeState, MessageTime, PendingCommand};
use crate::value::NodeId;

pub(super) struct PreparedCommand<'a> {
    inner: &'a HouseState,
    node: NodeId,
    pub(super) plan: CommandPlan,
    pub(super) topic: String,
    pub(super) asleep: bool,
    number: u64,
}

impl Drop for PreparedCommand<'_> {
    // In `drop`, so that a caller who stops waiting leaves nothing behind.
    fn drop(&mut self) {
        let mut state = self.inner.state();
        state
            .pending_commands
            .retain(|one| one.number != self.number);
    }
}

impl HouseState {
    pub(super) fn command_lock(&self, device: DeviceId) -> Arc<tokio::sync::Mutex<()>> {
        let mut busy = self.command_locks.lock();
        busy.retain(|_, one| Arc::strong_count(one) > 1);
        Arc::clone(busy.entry(device).or_default())
    }

    /// Makes every check that is possible before anything is sent.
    pub(super) fn prepare(
        &self,
        device: &HomeDevice,
        command: &DeviceCommand,
    ) -> Result<PreparedCommand<'_>, CommandOutcome> {
        let mut state = self.state();
        if let Some(reason) = connection_problem(&state, &self.settings.prefix) {
            return Err(CommandOutcome::Offline { reason });
        }
        let refused = |reason| CommandOutcome::Refused { reason };
        let node = NodeId::try_from(device.id).ok();
        let Some(node) = node.and_then(|id| state.nodes.get(&id)) else {
            return Err(refused(format!("'{}' no longer exists.", device.name)));
        };
        let plan = plan_command(node, command).map_err(refused)?;
        if node.status == DeviceStatus::Dead {
            return Err(CommandOutcome::Dead {
                last: last_state(node, &plan),
            });
        }
        let topic = state.set_topic(node, &plan.target).map_err(refused)?;
        // Registered before the publish, because the report may arrive before the broker's
        // acknowledgement.
        let number = self.next_command.fetch_add(1, Ordering::Relaxed);
        let (node, asleep) = (node.id, node.status == DeviceStatus::Asleep);
        state.pending_commands.push(PendingCommand {
            number,
            node,
            current: plan.current.clone(),
            target: plan.target.clone(),
            confirmation: CommandConfirmation::new(
                plan.wanted,
                Instant::now(),
                self.settings.command_timeout,
            ),
        });
        Ok(PreparedCommand {
            inner: self,
            node,
            plan,
            topic,
            asleep,
            number,
        })
    }
}

impl PreparedCommand<'_> {
    pub(super) async fn wait_for_confirmation(&self, doubt: Option<String>) -> CommandOutcome {
        let mut changes = self.inner.changes.subscribe();
        let mut asking: BoxFuture<'_, Option<Json>> = Box::pin(future::pending());
        loop {
            changes.borrow_and_update();
            let now = Instant::now();
            let step = find(&mut self.inner.state(), self.number)
                .map_or(ConfirmationStep::TimedOut, |watched| {
                    watched.confirmation.step(now)
                });
            let until = match step {
                ConfirmationStep::Done => {
                    let state = self.last_state().state;
                    return CommandOutcome::Done { state };
                }
                ConfirmationStep::Contrary(value) => return self.refused_outcome(&value),
                ConfirmationStep::Dead => {
                    let last = self.last_state();
                    return CommandOutcome::Dead { last };
                }
                ConfirmationStep::Asleep => {
                    let last = self.last_state();
                    return CommandOutcome::Asleep { last };
                }
                ConfirmationStep::TimedOut => return self.unknown_outcome(doubt),
                ConfirmationStep::RequestReading => {
                    asking = Box::pin(self.read_device());
                    continue;
                }
                ConfirmationStep::Wait(until) => until,
            };
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep_until(until) => {}
                value = &mut asking => {
                    asking = Box::pin(future::pending());
                    if let Some(value) = value {
                        self.record_reading(value);
                    }
                }
            }
        }
    }

    async fn read_device(&self) -> Option<Json> {
        let id = &self.plan.current;
        let mut value = json!({
            "nodeId": self.node, "commandClass": id.command_class,
            "endpoint": id.endpoint, "property": id.property,
        });
        if let Some(key) = id.json_key() {
            value["propertyKey"] = key;
        }
        let args = json!([value]);
        let answer = self.inner.request::<Json>(ApiFunction::PollValue, &args);
        payload::scalar_value(&answer.await.ok()??)
    }

    fn record_reading(&self, answer: Json) {
        let now = MessageTime::now();
        let mut state = self.inner.state();
        if let Some(watched) = find(&mut state, self.number) {
            watched.confirmation.record_reading(&answer, now.instant);
        }
        let node = state.nodes.get_mut(&self.node);
        if let Some(value) = node.and_then(|node| node.values.get_mut(&self.plan.current)) {
            value.value = Some(answer);
            value.updated = Some(now.wall);
            value.source = ReadingSource::Report;
        }
    }

    pub(super) fn last_state(&self) -> LastState {
        match self.inner.state().nodes.get(&self.node) {
            Some(node) => last_state(node, &self.plan),
            None => LastState {
                state: "unknown".to_owned(),
                at: None,
            },
        }
    }

    fn name(&self) -> String {
        let state = self.inner.state();
        let node = state.nodes.get(&self.node);
        node.map_or_else(String::new, ZwaveNode::title)
    }

    fn refused_outcome(&self, value: &Json) -> CommandOutcome {
        let words = match self.plan.current.command_class {
            class::SWITCH => switch_state(value),
            class::DIMMER => level_state(value),
            class::LOCK => lock_state(value),
            _ => value.as_f64().map(|number| with_unit(number, None)),
        };
        let words = words.unwrap_or_else(|| value.to_string());
        let name = self.name();
        CommandOutcome::Refused {
            reason: format!(
                "'{name}' received the command but did not follow it: it reports {words}."
            ),
        }
    }

    fn unknown_outcome(&self, doubt: Option<String>) -> CommandOutcome {
        let seconds = self.inner.settings.command_timeout.as_secs_f64();
        let reason = doubt.unwrap_or_else(|| {
            format!(
                "'{}' did not confirm the command within {seconds} s.",
                self.name()
            )
        });
        CommandOutcome::Unknown {
            reason,
            last: self.last_state(),
        }
    }
}

fn find(state: &mut HomeState, number: u64) -> Option<&mut PendingCommand> {
    let mut pending = state.pending_commands.iter_mut();
    pending.find(|one| one.number == number)
}

fn last_state(node: &ZwaveNode, plan: &CommandPlan) -> LastState {
    let value = node.values.get(&plan.current);
    let updated = value.and_then(|value| value.updated);
    LastState {
        state: to_device(node, false).state,
        at: updated.and_then(|at| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(at))),
    }
}
