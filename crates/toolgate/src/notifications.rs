//! Where `serve` notifies people that something waits for them: `approvals.notify`.

use std::sync::Arc;

use anyhow::{anyhow, bail};
use toolgate_server::{NotificationChannel, Notifications, Webhook};

use crate::config::Config;

/// Checks the settings without connecting anywhere.
pub(crate) fn check(config: &Config) -> anyhow::Result<()> {
    if let Some(unset) = config.unset_in_sections(&["approvals"]) {
        bail!(unset.clone());
    }
    let notify = &config.approvals.notify;
    if let Some(problem) = notify.problem() {
        return Err(located(config, &problem));
    }
    if !notify.mqtt.is_empty() {
        check_mqtt(config)?;
    }
    Ok(())
}

/// The channels of checked settings. Has to be called in a tokio runtime, on a
/// thread that may wait.
pub(crate) fn open(config: &Config) -> anyhow::Result<Notifications> {
    let notify = &config.approvals.notify;
    let mut channels: Vec<Arc<dyn NotificationChannel>> = Vec::new();
    let webhook = Webhook::new(notify).map_err(|problem| {
        let problem = format!("approvals.notify.webhook: can't be used: {problem}");
        located(config, &problem)
    })?;
    if let Some(webhook) = webhook {
        channels.push(Arc::new(webhook));
    }
    #[cfg(feature = "voice")]
    if let Some(mqtt) = mqtt::open(config)? {
        channels.push(Arc::new(mqtt));
    }
    Ok(Notifications {
        channels,
        dashboard: notify.dashboard.clone(),
    })
}

/// `problem` begins with its key.
fn located(config: &Config, problem: &str) -> anyhow::Error {
    match config.error_by_key(problem) {
        Some(error) => error.into(),
        None => anyhow!("{problem}"),
    }
}

#[cfg(not(feature = "voice"))]
fn check_mqtt(config: &Config) -> anyhow::Result<()> {
    let missing = crate::features::missing_message("voice");
    Err(located(
        config,
        &format!("approvals.notify.mqtt: {missing}"),
    ))
}

#[cfg(feature = "voice")]
fn check_mqtt(config: &Config) -> anyhow::Result<()> {
    if let Some(unset) = config.unset_in_sections(&["mqtt"]) {
        bail!(unset.clone());
    }
    match config.mqtt.broker() {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(located(
            config,
            "approvals.notify.mqtt: needs a broker: set mqtt.url",
        )),
        Err(error) => Err(located(config, &format!("mqtt.url: {error}"))),
    }
}

#[cfg(feature = "voice")]
mod mqtt {
    use std::time::Duration;

    use futures::future::BoxFuture;
    use toolgate_mqtt::{Mqtt, MqttClient, PublishError};
    use toolgate_server::{DeliveryError, NotificationChannel};

    use crate::config::Config;

    const TIMEOUT: Duration = Duration::from_secs(5);

    /// Publishes each notification to one topic, not retained: it is about a few minutes.
    pub(super) struct MqttTopic {
        client: MqttClient,
        topic: String,
    }

    pub(super) fn open(config: &Config) -> anyhow::Result<Option<MqttTopic>> {
        let topic = &config.approvals.notify.mqtt;
        let broker = config.mqtt.broker()?;
        let broker = broker.filter(|_| !topic.is_empty());
        Ok(broker.map(|settings| MqttTopic {
            client: MqttClient::open(settings),
            topic: topic.clone(),
        }))
    }

    impl NotificationChannel for MqttTopic {
        fn describe(&self) -> String {
            format!("MQTT topic {}", self.topic)
        }

        fn send<'a>(&'a self, notification: &'a str) -> BoxFuture<'a, Result<(), DeliveryError>> {
            Box::pin(async move {
                let payload = notification.to_owned().into();
                let publishing = self.client.publish(&self.topic, payload, false);
                let published = tokio::time::timeout(TIMEOUT, publishing).await;
                let failed = |text: String| DeliveryError {
                    text,
                    may_retry: true,
                };
                published
                    .map_err(|_| failed("the broker did not confirm it in time".to_owned()))?
                    .map_err(|error: PublishError| failed(error.to_string()))
            })
        }
    }
}
