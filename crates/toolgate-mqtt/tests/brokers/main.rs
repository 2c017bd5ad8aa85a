//! The client with the embedded broker, with Mosquitto, and with brokers that misbehave.
//!
//! `./test.sh` installs Mosquitto. Without it its tests are skipped, and with `CI=true` they fail.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on says where"
)]

mod brokers;
mod embedded;
mod faults;
mod hostile;
mod messaging;
mod mqtt3_brokers;
mod scripted_broker;
mod tls;

use std::time::Duration;

use toolgate_mqtt::{Mqtt, MqttClient, MqttClientSettings, MqttState, PublishError};

// Ten times the target for a reconnect: only a hang takes longer.
const HANG: Duration = Duration::from_secs(100);

async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, future)
        .await
        .unwrap_or_else(|_| panic!("{what} hangs"))
}

async fn online(client: &MqttClient) {
    let mut state = client.state();
    let met = in_time(
        "connecting",
        state.wait_for(|state| *state == MqttState::Online),
    )
    .await;
    met.expect("the client is there");
}

async fn offline(client: &MqttClient, says: &str) -> String {
    let mut state = client.state();
    let met = state
        .wait_for(|state| matches!(state, MqttState::Offline { reason } if reason.contains(says)));
    let met = tokio::time::timeout(HANG, met)
        .await
        .map(|met| met.expect("the client is there").clone());
    match met {
        Ok(MqttState::Offline { reason }) => reason,
        _ => panic!(
            "not offline because it {says}: {:?}",
            *client.state().borrow()
        ),
    }
}

async fn connected(url: &str) -> MqttClient {
    let client = MqttClient::open(settings(url));
    online(&client).await;
    client
}

fn settings(url: &str) -> MqttClientSettings {
    MqttClientSettings::new(url).expect("an address")
}

// Publishes until it succeeds, because a restarted broker takes a moment.
async fn publish_again(client: &MqttClient, topic: &str, payload: &'static str) {
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
