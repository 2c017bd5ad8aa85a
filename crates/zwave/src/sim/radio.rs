//! One message at a time, and what follows it.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::device::{effect, moves, verified};
use super::house::Change;
use super::world::{Due, MAX_WAITING, World};
use crate::value::{NodeId, NodeStatus};

const WRITE: Duration = Duration::from_millis(80);
const READ: Duration = Duration::from_millis(90);
/// Until the radio gives a node up.
const GIVE_UP: Duration = Duration::from_secs(4);
/// Until it gives up an answer.
const NO_ANSWER: Duration = Duration::from_millis(1_600);
/// After a command the gateway reads the device back: most at once, dimmers when they have faded.
const VERIFY: Duration = Duration::from_secs(1);
const VERIFY_DIMMER: Duration = Duration::from_secs(5);

/// `result.status` of `writeValue`.
pub(super) const FAIL: u8 = 2;
const INVALID: u8 = 5;
const SENT: u8 = 254;

/// What the radio sends.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Job {
    pub node: NodeId,
    pub work: Work,
    pub reply: Option<Reply>,
}

/// What for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Work {
    Write {
        value: usize,
        wish: Json,
    },
    /// Values that come in one message, for each message.
    Read {
        rest: Vec<Vec<usize>>,
    },
    Ping,
}

/// Whom to answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    pub function: String,
    pub args: Json,
    pub origin: Json,
    pub kind: Answer,
}

/// With what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Answer {
    /// The status of a write, or whether a ping came back.
    Outcome,
    /// The value that was read.
    Value(usize),
    /// The values that were read, by property.
    Values,
    /// That it is done.
    Nothing,
}

impl World {
    /// Sends as soon as the radio is free and the node listens.
    pub(super) fn enqueue(&mut self, job: Job) {
        let asleep = match self.nodes.get_mut(&job.node) {
            Some(node) if node.status == NodeStatus::Asleep => Some(&mut node.waiting),
            _ => None,
        };
        let queue = asleep.unwrap_or(&mut self.queue);
        if queue.len() >= MAX_WAITING {
            tracing::warn!("the simulated radio has too much to send; a message was dropped");
            return;
        }
        // Superseded by a newer command: only the gateway's log says so.
        queue.retain(|waiting| !same_write(waiting, &job));
        queue.push_back(job);
        self.start_sending();
    }

    pub(super) fn start_sending(&mut self) {
        if self.sending.is_some() {
            return;
        }
        let Some(job) = self.queue.pop_front() else {
            return;
        };
        let faults = self.nodes.get(&job.node).map(|node| node.faults);
        let takes = match (&job.work, faults) {
            (_, Some(faults)) if faults.dead => GIVE_UP,
            (Work::Read { .. }, Some(faults)) if faults.loses_answers => NO_ANSWER,
            (Work::Write { .. }, _) => WRITE,
            _ => READ,
        };
        self.sending = Some(job);
        self.after(takes, Due::Radio);
    }

    /// The radio is done with a message.
    pub(super) fn sent(&mut self) {
        if let Some(job) = self.sending.take() {
            self.finish(job);
        }
        self.start_sending();
    }

    fn finish(&mut self, job: Job) {
        let Some(node) = self.nodes.get_mut(&job.node) else {
            return;
        };
        if node.faults.dead {
            if node.status != NodeStatus::Dead {
                self.status(job.node, NodeStatus::Dead);
            }
            return self.failed(
                &job,
                "Failed to send the command after 3 attempts (Status NoAck) (ZW0204)",
            );
        }
        if node.status == NodeStatus::Dead {
            self.status(job.node, NodeStatus::Alive);
        }
        match job.work {
            Work::Write { value, wish } => self.written(job.node, value, &wish, job.reply),
            Work::Ping => self.answer(job.reply, Some(json!(true))),
            Work::Read { .. } if self.faults(job.node).loses_answers => {
                self.failed(
                    &job,
                    "Timeout while waiting for a response from the node (ZW0201)",
                );
            }
            Work::Read { rest } => self.answered(job.node, rest, job.reply),
        }
    }

    fn failed(&mut self, job: &Job, reason: &str) {
        let Some(reply) = &job.reply else {
            return;
        };
        match job.work {
            Work::Write { .. } => self.answer(Some(reply.clone()), Some(json!({ "status": FAIL }))),
            Work::Ping => self.answer(Some(reply.clone()), Some(json!(false))),
            Work::Read { .. } => self.refuse(reply, reason),
        }
    }

    fn written(&mut self, id: NodeId, target: usize, wish: &Json, reply: Option<Reply>) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        node.count.heard += 1;
        let Some(effect) = effect(node, target, wish) else {
            return self.answer(reply, Some(json!({ "status": INVALID })));
        };
        let (faults, draws) = (node.faults, node.values[target].id.command_class == 37);
        if !faults.jams {
            for (value, real) in effect.real {
                self.become_real(id, value, real);
            }
            if draws && self.options.life {
                self.after(Duration::from_millis(1_500), Due::Draw { node: id });
            }
        }
        if faults.loses_reports {
            return;
        }
        let echo = Due::Echo {
            node: id,
            target,
            sent: wish.clone(),
            reply,
        };
        if faults.tells_after.is_zero() {
            self.happen_now(echo);
        } else {
            self.after(faults.tells_after, echo);
        }
    }

    fn happen_now(&mut self, due: Due) {
        if let Due::Echo {
            node,
            target,
            sent,
            reply,
        } = due
        {
            self.echo(node, target, &sent, reply);
        }
    }

    /// The device changes, whoever knows.
    fn become_real(&mut self, id: NodeId, value: usize, real: Json) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        let told = &mut node.values[value];
        let before = told.real.replace(real.clone());
        if before.as_ref() == Some(&real) {
            return;
        }
        if moves(told) {
            node.count.moved += 1;
        }
        if told.is(38, "currentValue") && real != json!(0) {
            node.last_level = real.as_u64().unwrap_or(node.last_level);
        }
        let label = told.label.clone();
        if let Some(device) = node.device() {
            self.changes.push(Change {
                device,
                label,
                before,
                after: real,
            });
        }
    }

    /// The gateway shows what it expects of a command, and will look later.
    pub(super) fn echo(&mut self, id: NodeId, target: usize, sent: &Json, reply: Option<Reply>) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let (faults, class) = (node.faults, node.values[target].id.command_class);
        let expected = effect(node, target, sent).map(|effect| effect.expected);
        for (value, expected) in expected.unwrap_or_default() {
            // The target of a dimmer keeps its old time.
            let dated = !(class == 38 && value == target);
            self.learn(id, value, expected, dated);
        }
        self.answer(reply, Some(json!({ "status": SENT })));
        self.forget_verify(id, target);
        let usual = if class == 38 { VERIFY_DIMMER } else { VERIFY };
        self.after(
            faults.verifies_after.unwrap_or(usual),
            Due::Verify { node: id, target },
        );
    }

    pub(super) fn verify(&mut self, id: NodeId, target: usize) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let rest = vec![verified(node, target)];
        self.enqueue(Job {
            node: id,
            work: Work::Read { rest },
            reply: None,
        });
    }

    /// A device answered: one message with some of its values.
    fn answered(&mut self, id: NodeId, mut rest: Vec<Vec<usize>>, reply: Option<Reply>) {
        if rest.is_empty() {
            return self.answer(reply, None);
        }
        self.heard(id);
        let values = rest.remove(0);
        for value in &values {
            self.learn_real(id, *value);
        }
        if !rest.is_empty() {
            self.queue.push_front(Job {
                node: id,
                work: Work::Read { rest },
                reply,
            });
            return;
        }
        let result = reply
            .as_ref()
            .and_then(|reply| self.result(id, reply.kind, &values));
        self.answer(reply, result);
    }

    fn result(&self, id: NodeId, kind: Answer, values: &[usize]) -> Option<Json> {
        let node = self.nodes.get(&id)?;
        match kind {
            Answer::Value(value) => node.values[value].known.clone(),
            Answer::Values => {
                let known = values.iter().map(|value| &node.values[*value]);
                let known = known
                    .filter_map(|value| Some((value.id.property.clone(), value.known.clone()?)));
                Some(known.collect())
            }
            Answer::Outcome | Answer::Nothing => None,
        }
    }

    /// A device tells by itself.
    pub(super) fn report(&mut self, id: NodeId, value: usize, real: Json) {
        self.become_real(id, value, real);
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        if node.faults.dead || node.faults.loses_reports {
            return;
        }
        let alarm = node.values[value].id.command_class == 113;
        let old = ["alarmType", "alarmLevel"].map(|property| node.find(113, property));
        self.heard(id);
        for old in old.into_iter().flatten().filter(|_| alarm) {
            self.learn(id, old, json!(0), true);
        }
        self.learn_real(id, value);
    }

    fn learn_real(&mut self, id: NodeId, value: usize) {
        let node = self.nodes.get(&id);
        let real = node.and_then(|node| {
            let told = &node.values[value];
            if !told.is(38, "targetValue") {
                return told.real.clone();
            }
            // A dimmer that has faded is where it was going.
            node.values[node.find(38, "currentValue")?].real.clone()
        });
        if let Some(real) = real {
            self.learn(id, value, real, true);
        }
    }

    /// The gateway comes to know a value.
    fn learn(&mut self, id: NodeId, value: usize, known: Json, dated: bool) {
        let wall = self.wall();
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        let told = &mut node.values[value];
        let before = told.known.replace(known.clone());
        if dated {
            told.updated = Some(wall);
        }
        let mut change = json!({
            "commandClassName": super::catalog::class(told.id.command_class).0,
            "commandClass": told.id.command_class, "endpoint": told.id.endpoint,
            "property": told.id.property, "newValue": known, "prevValue": before,
            "propertyName": told.property_name,
        });
        if let Some(key) = told.json_key() {
            change["propertyKey"] = key;
            change["propertyKeyName"] = json!(told.key_name);
        }
        let summary = node.summary();
        self.publish_value(id, value);
        self.event("node", "node_value_updated", json!([summary, change]));
    }

    fn heard(&mut self, id: NodeId) {
        let wall = self.wall();
        if let Some(node) = self.nodes.get_mut(&id) {
            node.last_active = wall;
        }
        self.publish_active(id);
    }

    /// What the gateway thinks of a node changes.
    pub(super) fn status(&mut self, id: NodeId, status: NodeStatus) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        node.status = status;
        let summary = node.summary();
        let event = match status {
            NodeStatus::Dead => "node_dead",
            NodeStatus::Asleep => "node_sleep",
            NodeStatus::Awake => "node_wakeup",
            NodeStatus::Alive | NodeStatus::Unknown => "node_alive",
        };
        self.publish_status(id, status);
        self.event("node", event, json!([summary]));
    }

    fn faults(&self, id: NodeId) -> super::options::Faults {
        self.nodes
            .get(&id)
            .map(|node| node.faults)
            .unwrap_or_default()
    }
}

fn same_write(waiting: &Job, new: &Job) -> bool {
    match (&waiting.work, &new.work) {
        (
            Work::Write { value: old, .. },
            Work::Write {
                value: new_value, ..
            },
        ) => waiting.node == new.node && old == new_value,
        _ => false,
    }
}
