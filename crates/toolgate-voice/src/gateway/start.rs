//! The start: everything side by side, each part timed and told of.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use toolgate_mqtt::{Client, Mqtt};

use super::hub::Hub;
use crate::wyoming::{Address, Connection};
use crate::{Event, Role, Watcher};

/// How long an engine has to say that it is there.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at an engine that is there, and at one that is not.
const LOOKS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(2)];

/// One part of the start; `problem` is what its result has to say against itself.
pub(super) async fn phase<T>(
    hub: &Hub,
    name: &str,
    work: impl Future<Output = T>,
    problem: impl Fn(&T) -> Option<String>,
) -> T {
    let begun = Instant::now();
    let done = work.await;
    let problem = problem(&done);
    hub.event(Event::Phase {
        name,
        took: begun.elapsed(),
        problem: problem.as_deref(),
    });
    done
}

/// Tells once whether the broker is there. Nobody waits for that.
pub(super) async fn first_word_of(hub: Arc<Hub>, client: Client) {
    let mut state = client.state();
    let settled = async {
        // It begins offline, without having tried.
        let _is_open = state.changed().await.is_ok();
        state.borrow().clone()
    };
    phase(&hub, "MQTT", settled, |state| match state {
        toolgate_mqtt::State::Offline { reason } => Some(reason.clone()),
        _ => None,
    })
    .await;
}

/// Looks whether an engine takes connections, and tells when that changes. A connection is all that is asked for: one that
/// is at work may take long to say more.
pub(super) async fn look_after(hub: Arc<Hub>, role: Role, address: Address) {
    let mut is_there = !hub.lost().contains(&role);
    loop {
        sleep(if is_there { LOOKS[0] } else { LOOKS[1] }).await;
        is_there = look(&hub, role, &address).await;
    }
}

/// One look.
pub(super) async fn look(hub: &Hub, role: Role, address: &Address) -> bool {
    match Connection::connect(address, PATIENCE).await {
        Ok(_) => hub.event(Event::Back(role)),
        Err(error) => {
            let why = error.to_string();
            hub.event(Event::Lost { role, why: &why });
            return false;
        }
    }
    true
}
