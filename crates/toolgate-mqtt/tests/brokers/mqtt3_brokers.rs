//! Brokers that only support MQTT 3.1.1.

use tokio::{io::AsyncWriteExt, net::TcpStream};
use toolgate_mqtt::{MqttClient, MqttVersion};

use crate::{
    in_time, offline, online,
    scripted_broker::{ScriptedBroker, version},
    settings,
};

/// How an old broker reacts to MQTT 5.
#[derive(Debug, Clone, Copy)]
enum OldBrokerBehavior {
    /// `CONNACK` with "unacceptable protocol version", as Mosquitto 1.5 has it.
    Says,
    HangsUp,
}

async fn run_old_broker(fake: ScriptedBroker, behavior: OldBrokerBehavior) -> (Vec<u8>, TcpStream) {
    let mut asked = Vec::new();
    loop {
        let (mut stream, connect) = fake.client().await;
        asked.push(version(&connect));
        if version(&connect) == 4 {
            stream.write_all(&[0x20, 2, 0, 0]).await.unwrap();
            return (asked, stream);
        }
        if let OldBrokerBehavior::Says = behavior {
            stream.write_all(&[0x20, 2, 0, 1]).await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_older_version_is_spoken_with_an_old_broker() {
    for behavior in [OldBrokerBehavior::Says, OldBrokerBehavior::HangsUp] {
        let fake = ScriptedBroker::new().await;
        let client = MqttClient::open(settings(&fake.url()));
        let (asked, _stream) = in_time("the old broker", run_old_broker(fake, behavior)).await;
        assert_eq!(asked, [5, 4], "{behavior:?}");
        online(&client).await;
    }
}

#[tokio::test]
async fn a_required_version_is_not_given_up() {
    let fake = ScriptedBroker::new().await;
    let mut settings = settings(&fake.url());
    settings.version = MqttVersion::V5;
    let client = MqttClient::open(settings);
    let broker = tokio::spawn(run_old_broker(fake, OldBrokerBehavior::Says));
    offline(&client, "does not speak this version of MQTT").await;
    broker.abort();
}

#[tokio::test]
async fn a_wrong_password_at_an_old_broker_is_reported() {
    let fake = ScriptedBroker::new().await;
    let mut settings = settings(&fake.url());
    settings.username = Some("house".to_owned());
    let client = MqttClient::open(settings);
    let broker = async {
        for code in [1, 5] {
            let (mut stream, _) = fake.client().await;
            stream.write_all(&[0x20, 2, 0, code]).await.unwrap();
        }
    };
    in_time("the old broker", broker).await;
    offline(&client, "refuses the user name or the password").await;
}
