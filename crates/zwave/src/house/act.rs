//! Commands, from the publish to the proof.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

use futures::future::{self, BoxFuture};
use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep_until, timeout_at};
use toolgate_mqtt::PublishError;

use super::{House, Inner, missing};
use crate::api::Function;
use crate::command::{Achieved, Command, Last, Plan, Step, Watch, plan};
use crate::device::{Device, amount, class, device, level, locked, switched};
use crate::node::{Node, Source};
use crate::payload;
use crate::state::{Now, State, Watched};
use crate::value::{NodeId, NodeStatus};

/// A command that was registered and not sent yet.
struct Prepared<'a> {
    inner: &'a Inner,
    node: NodeId,
    plan: Plan,
    topic: String,
    asleep: bool,
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

impl House {
    /// Tells a device something, once, and waits for what comes of it.
    pub async fn command(&self, device: &Device, command: Command) -> Achieved {
        let inner = &*self.inner;
        let deadline = Instant::now() + inner.settings.command_timeout;
        let busy = inner.busy(device.node);
        let Ok(_alone) = timeout_at(deadline, busy.lock()).await else {
            return Achieved::Refused {
                reason: format!(
                    "'{}' is still busy with another command; nothing was sent.",
                    device.name
                ),
            };
        };
        let prepared = match inner.prepare(device, &command) {
            Ok(prepared) => prepared,
            Err(achieved) => return achieved,
        };
        let deadline = Instant::now() + inner.settings.command_timeout;
        let payload = payload::command(&prepared.plan.send);
        let sent = timeout_at(
            deadline,
            inner.mqtt.publish(&prepared.topic, payload, false),
        )
        .await;
        let doubt = match sent {
            Ok(Ok(())) => None,
            Ok(Err(PublishError::Offline { reason })) => return Achieved::Offline { reason },
            Ok(Err(PublishError::Refused { reason })) => return Achieved::Refused { reason },
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("The MQTT broker did not confirm the command.".to_owned()),
        };
        if prepared.asleep && doubt.is_none() {
            return Achieved::Asleep {
                last: prepared.last(),
            };
        }
        prepared.follow(doubt).await
    }
}

impl Inner {
    fn busy(&self, node: NodeId) -> Arc<tokio::sync::Mutex<()>> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.retain(|_, one| Arc::strong_count(one) > 1);
        Arc::clone(busy.entry(node).or_default())
    }

    /// Decides all that can be decided before anything is sent. The watch begins before the publish: the proof may be
    /// faster than the broker's word.
    fn prepare(&self, device: &Device, command: &Command) -> Result<Prepared<'_>, Achieved> {
        let mut state = self.state();
        if let Some(reason) = missing(&state, &self.settings.prefix) {
            return Err(Achieved::Offline { reason });
        }
        let refused = |reason| Achieved::Refused { reason };
        let Some(node) = state.nodes.get(&device.node) else {
            return Err(refused(format!("'{}' is not there any more.", device.name)));
        };
        let plan = plan(node, command).map_err(refused)?;
        if node.status == NodeStatus::Dead {
            return Err(Achieved::Dead {
                last: last(node, &plan),
            });
        }
        let topic = state.set_topic(node, &plan.target).map_err(refused)?;
        let number = self.next_watch.fetch_add(1, Ordering::Relaxed);
        let asleep = node.status == NodeStatus::Asleep;
        state.watched.push(Watched {
            number,
            node: device.node,
            current: plan.current.clone(),
            target: plan.target.clone(),
            watch: Watch::new(plan.wanted, Instant::now(), self.settings.command_timeout),
        });
        Ok(Prepared {
            inner: self,
            node: device.node,
            plan,
            topic,
            asleep,
            number,
        })
    }
}

impl Prepared<'_> {
    /// Follows the value until it is clear what came of the command.
    async fn follow(&self, doubt: Option<String>) -> Achieved {
        let mut changes = self.inner.changes.subscribe();
        let mut asking: BoxFuture<'_, Option<Json>> = Box::pin(future::pending());
        loop {
            changes.borrow_and_update();
            let until = match self.step() {
                Step::Done => {
                    return Achieved::Done {
                        state: self.last().state,
                    };
                }
                Step::Contrary(value) => return self.contrary(&value),
                Step::Dead => return Achieved::Dead { last: self.last() },
                Step::Asleep => return Achieved::Asleep { last: self.last() },
                Step::Over => return self.unknown(doubt),
                Step::Ask => {
                    asking = Box::pin(self.read());
                    continue;
                }
                Step::Wait(until) => until,
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

    fn step(&self) -> Step {
        let mut state = self.inner.state();
        let Some(watched) = find(&mut state, self.number) else {
            return Step::Over;
        };
        let step = watched.watch.step(Instant::now());
        if step == Step::Ask {
            watched.watch.asked();
        }
        step
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
            watched.watch.take_answer(&answer, now.instant);
        }
        let value = state
            .nodes
            .get_mut(&self.node)
            .and_then(|node| node.values.get_mut(&self.plan.current));
        if let Some(value) = value {
            value.value = Some(answer);
            value.updated = Some(now.wall);
            value.source = Source::Report;
        }
    }

    fn last(&self) -> Last {
        match self.inner.state().nodes.get(&self.node) {
            Some(node) => last(node, &self.plan),
            None => Last {
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

    fn contrary(&self, value: &Json) -> Achieved {
        let words = match self.plan.current.command_class {
            class::SWITCH => switched(value),
            class::DIMMER => level(value),
            class::LOCK => locked(value),
            _ => value.as_f64().map(|number| amount(number, None)),
        };
        let words = words.unwrap_or_else(|| value.to_string());
        Achieved::Refused {
            reason: format!(
                "'{}' was told, but did not do it: it reports {words}.",
                self.name()
            ),
        }
    }

    fn unknown(&self, doubt: Option<String>) -> Achieved {
        let seconds = self.inner.settings.command_timeout.as_secs_f64();
        let reason = doubt.unwrap_or_else(|| {
            format!(
                "The command was sent once, and '{}' did not confirm it within {seconds} s.",
                self.name()
            )
        });
        Achieved::Unknown {
            reason,
            last: self.last(),
        }
    }
}

fn find(state: &mut State, number: u64) -> Option<&mut Watched> {
    state.watched.iter_mut().find(|one| one.number == number)
}

fn last(node: &Node, plan: &Plan) -> Last {
    let updated = node
        .values
        .get(&plan.current)
        .and_then(|value| value.updated);
    Last {
        state: device(node, false).state,
        at: updated.and_then(|at| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(at))),
    }
}
