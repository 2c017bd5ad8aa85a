//! One message at a time, and what follows it.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::device::effect;
use super::world::{Due, MAX_WAITING, World};
use crate::value::NodeId;
use toolgate_home::DeviceStatus;

const WRITE: Duration = Duration::from_millis(80);
const READ: Duration = Duration::from_millis(90);
/// Until the radio gives a node up.
const GIVE_UP: Duration = Duration::from_secs(4);
/// Until it gives up an answer.
const NO_ANSWER: Duration = Duration::from_millis(1_600);

/// `result.status` of `writeValue`.
pub(super) const FAIL: u8 = 2;
const INVALID: u8 = 5;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Job {
    pub node: NodeId,
    pub work: Work,
    pub reply: Option<Reply>,
}

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

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    pub function: String,
    pub args: Json,
    pub origin: Json,
    pub kind: Answer,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Answer {
    /// The status of a write, or whether a ping came back.
    Outcome,
    Value(usize),
    /// The values that were read, by property.
    Values,
    Nothing,
}

impl World {
    /// Sends as soon as the radio is free and the node listens.
    pub(super) fn enqueue(&mut self, job: Job) {
        let asleep = match self.nodes.get_mut(&job.node) {
            Some(node) if node.status == DeviceStatus::Asleep => Some(&mut node.waiting),
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
        self.after(self.options.scaled(takes), Due::Radio);
    }

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
            if node.status != DeviceStatus::Dead {
                self.status(job.node, DeviceStatus::Dead);
            }
            return self.failed(
                &job,
                "Failed to send the command after 3 attempts (Status NoAck) (ZW0204)",
            );
        }
        if node.status == DeviceStatus::Dead {
            self.status(job.node, DeviceStatus::Alive);
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
        if faults.tells_after.is_zero() {
            return self.echo(id, target, wish, reply);
        }
        let sent = wish.clone();
        let echo = Due::Echo {
            node: id,
            target,
            sent,
            reply,
        };
        self.after(faults.tells_after, echo);
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
