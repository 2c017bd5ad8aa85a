//! The simulated radio, which sends one message at a time.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::device::write_effect;
use super::value::SimulatedValue;
use super::world::{MAX_WAITING, ScheduledEvent, SimulatedWorld};
use crate::value::NodeId;
use toolgate_home::DeviceStatus;

const WRITE: Duration = Duration::from_millis(80);
const READ: Duration = Duration::from_millis(90);
const GIVE_UP_AFTER: Duration = Duration::from_secs(4);
const POWER_REPORT: Duration = Duration::from_millis(1_500);
const NO_ANSWER: Duration = Duration::from_millis(1_600);

/// Values of `result.status` in replies to `writeValue`.
pub(super) const FAIL: u8 = 2;
const INVALID: u8 = 5;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RadioJob {
    pub node: NodeId,
    pub work: RadioWork,
    pub reply: Option<PendingReply>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum RadioWork {
    Write {
        value: usize,
        requested: Json,
    },
    /// One list for each radio message, with the numbers of the values that it reads. The
    /// first is sent next.
    Read {
        batches: Vec<Vec<usize>>,
    },
    Ping,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct PendingReply {
    pub function: String,
    pub args: Json,
    pub origin: Json,
    pub kind: ReplyKind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ReplyKind {
    /// The status of a write, or the success of a ping.
    Outcome,
    Value(usize),
    Values,
    Nothing,
}

impl SimulatedWorld {
    pub(super) fn enqueue(&mut self, job: RadioJob) {
        let asleep = match self.nodes.get_mut(&job.node) {
            Some(node) if node.status == DeviceStatus::Asleep => Some(&mut node.waiting),
            _ => None,
        };
        let queue = asleep.unwrap_or(&mut self.queue);
        if queue.len() >= MAX_WAITING {
            tracing::warn!("the simulated radio has too much to send; a message was dropped");
            return;
        }
        // A newer command replaces a waiting one, which the real gateway only mentions in its log.
        queue.retain(|waiting| !is_same_write(waiting, &job));
        queue.push_back(job);
        self.start_sending();
    }

    pub(super) fn enqueue_write(
        &mut self,
        node: NodeId,
        value: usize,
        requested: Json,
        reply: Option<PendingReply>,
    ) {
        let work = RadioWork::Write { value, requested };
        self.enqueue(RadioJob { node, work, reply });
    }

    pub(super) fn enqueue_read(
        &mut self,
        node: NodeId,
        batches: Vec<Vec<usize>>,
        reply: Option<PendingReply>,
    ) {
        let work = RadioWork::Read { batches };
        self.enqueue(RadioJob { node, work, reply });
    }

    pub(super) fn start_sending(&mut self) {
        if self.sending.is_some() {
            return;
        }
        let Some(job) = self.queue.pop_front() else {
            return;
        };
        let faults = self.nodes.get(&job.node).map(|node| node.faults);
        let duration = match (&job.work, faults) {
            (_, Some(faults)) if faults.dead => GIVE_UP_AFTER,
            (RadioWork::Read { .. }, Some(faults)) if faults.loses_answers => NO_ANSWER,
            (RadioWork::Write { .. }, _) => WRITE,
            _ => READ,
        };
        self.sending = Some(job);
        self.after(self.options.scaled(duration), ScheduledEvent::Radio);
    }

    pub(super) fn finish_sending(&mut self) {
        if let Some(job) = self.sending.take() {
            self.finish(job);
        }
        self.start_sending();
    }

    fn finish(&mut self, job: RadioJob) {
        let Some(node) = self.nodes.get_mut(&job.node) else {
            return;
        };
        if node.faults.dead {
            if node.status != DeviceStatus::Dead {
                self.set_status(job.node, DeviceStatus::Dead);
            }
            let reason = "Failed to send the command after 3 attempts (Status NoAck) (ZW0204)";
            return self.fail_job(&job, reason);
        }
        if node.status == DeviceStatus::Dead {
            self.set_status(job.node, DeviceStatus::Alive);
        }
        match job.work {
            RadioWork::Write { value, requested } => {
                self.apply_write(job.node, value, &requested, job.reply);
            }
            RadioWork::Ping => self.answer(job.reply, Some(json!(true))),
            RadioWork::Read { .. } if self.faults(job.node).loses_answers => {
                let reason = "Timeout while waiting for a response from the node (ZW0201)";
                self.fail_job(&job, reason);
            }
            RadioWork::Read { batches } => self.apply_read(job.node, batches, job.reply),
        }
    }

    fn fail_job(&mut self, job: &RadioJob, reason: &str) {
        let Some(reply) = &job.reply else {
            return;
        };
        match job.work {
            RadioWork::Write { .. } => {
                self.answer(Some(reply.clone()), Some(json!({ "status": FAIL })));
            }
            RadioWork::Ping => self.answer(Some(reply.clone()), Some(json!(false))),
            RadioWork::Read { .. } => self.refuse(reply, reason),
        }
    }

    fn apply_write(
        &mut self,
        id: NodeId,
        target: usize,
        requested: &Json,
        reply: Option<PendingReply>,
    ) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        node.count.received += 1;
        let Some(effect) = write_effect(node, target, requested) else {
            return self.answer(reply, Some(json!({ "status": INVALID })));
        };
        let (faults, draws) = (node.faults, node.values[target].id.command_class == 37);
        if !faults.jams {
            for (value, real) in effect.real {
                self.set_actual(id, value, real);
            }
            if draws && self.options.life {
                self.after(POWER_REPORT, ScheduledEvent::ReportPower(id));
            }
        }
        if faults.loses_reports {
            return;
        }
        if faults.publish_delay.is_zero() {
            return self.publish_echo(id, target, requested, reply);
        }
        let sent = requested.clone();
        let echo = ScheduledEvent::Echo(id, target, sent, reply);
        self.after(faults.publish_delay, echo);
    }

    fn apply_read(
        &mut self,
        id: NodeId,
        mut batches: Vec<Vec<usize>>,
        reply: Option<PendingReply>,
    ) {
        if batches.is_empty() {
            return self.answer(reply, None);
        }
        self.mark_active(id);
        let values = batches.remove(0);
        for value in &values {
            self.learn_actual(id, *value);
        }
        if !batches.is_empty() {
            let work = RadioWork::Read { batches };
            return self.queue.push_front(RadioJob {
                node: id,
                work,
                reply,
            });
        }
        let asked = reply.as_ref();
        let result = asked.and_then(|reply| self.result(id, reply.kind, &values));
        self.answer(reply, result);
    }

    fn result(&self, id: NodeId, kind: ReplyKind, values: &[usize]) -> Option<Json> {
        let node = self.nodes.get(&id)?;
        match kind {
            ReplyKind::Value(value) => node.values[value].known.clone(),
            ReplyKind::Values => {
                let values = values.iter().map(|value| &node.values[*value]);
                let known = |value: &SimulatedValue| {
                    Some((value.id.property.clone(), value.known.clone()?))
                };
                Some(values.filter_map(known).collect())
            }
            ReplyKind::Outcome | ReplyKind::Nothing => None,
        }
    }

    fn faults(&self, id: NodeId) -> super::options::DeviceFaults {
        let node = self.nodes.get(&id);
        node.map(|node| node.faults).unwrap_or_default()
    }
}

fn is_same_write(waiting: &RadioJob, new: &RadioJob) -> bool {
    let written = |job: &RadioJob| match job.work {
        RadioWork::Write { value, .. } => Some((job.node, value)),
        _ => None,
    };
    written(waiting).is_some() && written(waiting) == written(new)
}
