//! Passes on the notifications of extensions that HTTP clients send.

use http::{HeaderMap, Response, StatusCode};

use super::McpHttp;
use super::body::HttpBody;
use super::headers::{check_known_version, is_modern};
use super::post::Requester;
use super::reply;
use crate::server::client_message::ClientNotification;
use crate::server::methods::RequestLifecycle;

impl McpHttp {
    /// Passes a notification of an extension on before it is accepted, so that several arrive in
    /// the order in which their client sends them.
    pub(super) async fn pass_notification(
        &self,
        headers: &HeaderMap,
        notification: ClientNotification,
        owner: u64,
    ) -> Response<HttpBody> {
        let requester = match is_modern(headers) {
            true => match notification.lifecycle() {
                Some(RequestLifecycle::SelfContained { is_modern }) => {
                    Requester::SelfContained { is_modern }
                }
                // It doesn't say what its client supports, so nobody can get it.
                _ => return reply::empty(StatusCode::ACCEPTED),
            },
            false => {
                let session = check_known_version(headers)
                    .and_then(|()| self.state.sessions.find(headers, owner));
                match session {
                    Ok(session) => Requester::Session(session),
                    Err(error) => return error.into_response(None),
                }
            }
        };
        let _counts_as_running = self.state.calls.token();
        let stop = match &requester {
            Requester::Session(session) => session.lifetime.calls.child_token(),
            _ => self.state.lifetime.calls.child_token(),
        };
        let context = requester.context(&self.state, owner, &stop, None);
        self.service.pass_notification(notification, &context).await;
        reply::empty(StatusCode::ACCEPTED)
    }
}
