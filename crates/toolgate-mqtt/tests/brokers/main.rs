//! The client against brokers: the embedded one, real Mosquitto, and some that misbehave.
//!
//! Mosquitto is installed by `./test.sh`; without it its tests are skipped, and with `CI=true` they fail.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can not go on says where"
)]

mod brokers;
mod embedded;
mod fake;
mod faults;
mod hostile;
mod old;
mod talking;
mod tls;

use std::time::Duration;

use toolgate_mqtt::{Client, Mqtt, PublishError, Settings, State};

/// Ten times what is promised for a broker that is back: only a hang takes longer.
const HANG: Duration = Duration::from_secs(100);

async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, future)
        .await
        .unwrap_or_else(|_| panic!("{what} hangs"))
}

async fn online(client: &Client) {
    let mut state = client.state();
    let met = in_time(
        "connecting",
        state.wait_for(|state| *state == State::Online),
    )
    .await;
    met.expect("the client is there");
}

/// Waits until the client is offline for a reason that says this.
async fn offline(client: &Client, says: &str) -> String {
    let mut state = client.state();
    let met =
        state.wait_for(|state| matches!(state, State::Offline { reason } if reason.contains(says)));
    let met = tokio::time::timeout(HANG, met)
        .await
        .map(|met| met.expect("the client is there").clone());
    match met {
        Ok(State::Offline { reason }) => reason,
        _ => panic!(
            "not offline because it {says}: {:?}",
            *client.state().borrow()
        ),
    }
}

async fn connected(url: &str) -> Client {
    let client = Client::open(settings(url));
    online(&client).await;
    client
}

fn settings(url: &str) -> Settings {
    Settings::new(url).expect("an address")
}

/// Publishes until it works: a broker that was away is not back at once.
async fn publish_again(client: &Client, topic: &str, payload: &'static str) {
    let working = async {
        loop {
            match client.publish(topic, payload.into(), false).await {
                Ok(()) => return,
                Err(PublishError::Offline { .. }) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(other) => panic!("{other}"),
            }
        }
    };
    in_time("the next publish", working).await;
}
