//! Sends notifications as POST requests.

use std::time::Duration;

use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, Url};
use toolgate_net::root_cause;

use super::{DeliveryError, NotificationChannel, NotifySettings};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A [`NotificationChannel`] that posts each notification to one address.
pub struct Webhook {
    client: Client,
    url: Url,
    headers: HeaderMap,
}

impl Webhook {
    /// Returns nothing without an address. Building it takes a while, so don't call it on a thread
    /// of the async runtime.
    ///
    /// # Errors
    ///
    /// If the address or the machine's certificates can't be used. [`NotifySettings::problem`]
    /// finds mistakes in the settings.
    pub fn new(settings: &NotifySettings) -> Result<Option<Self>, String> {
        if settings.webhook.is_empty() {
            return Ok(None);
        }
        let url: Url = settings
            .webhook
            .parse()
            .map_err(|_| "it is not an address".to_owned())?;
        let client = toolgate_net::client_builder(toolgate_net::is_local_url(&url))
            .timeout(REQUEST_TIMEOUT)
            .build()
            .map_err(|error| root_cause(&error))?;
        let headers = settings.headers.iter().filter_map(|(name, value)| {
            let name: HeaderName = name.parse().ok()?;
            let mut value: HeaderValue = value.parse().ok()?;
            value.set_sensitive(true);
            Some((name, value))
        });
        Ok(Some(Self {
            client,
            url,
            headers: headers.collect(),
        }))
    }
}

impl NotificationChannel for Webhook {
    /// Only the host, because the path of a webhook is often its secret.
    fn describe(&self) -> String {
        format!("webhook at {}", self.url.host_str().unwrap_or_default())
    }

    fn send<'a>(&'a self, notification: &'a str) -> BoxFuture<'a, Result<(), DeliveryError>> {
        let request = self.client.post(self.url.clone());
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.headers(self.headers.clone());
        let sending = request.body(notification.to_owned()).send();
        Box::pin(async move {
            let response = sending.await.map_err(|error| DeliveryError {
                // Without the address.
                text: root_cause(&error.without_url()),
                may_retry: true,
            })?;
            match response.status() {
                status if status.is_success() => Ok(()),
                status => Err(DeliveryError {
                    text: format!("the webhook answered {status}"),
                    may_retry: is_temporary(status),
                }),
            }
        })
    }
}

fn is_temporary(status: StatusCode) -> bool {
    let is_busy = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status);
    status.is_server_error() || is_busy
}
