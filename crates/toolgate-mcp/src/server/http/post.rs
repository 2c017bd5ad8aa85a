//! One message of a client: who asks, in which era, and the answer.

use http::{HeaderMap, HeaderValue, Response, StatusCode};
use rmcp::model::{
    ClientNotification, ClientRequest, EmptyResult, ErrorCode, ErrorData, GetMeta,
    InitializeRequestParams, RequestId, ServerResult,
};
use tracing::debug;

use super::McpHttp;
use super::body::HttpBody;
use super::era::{Asker, is_modern, known_version};
use super::headers::{self, Accepts, SESSION};
use super::reply::{self, Refusal, answered, failed};
use crate::server::handler::connected;
use crate::server::request::{self, Incoming};
use crate::server::service::{self, Call, Life};
use crate::server::watched::Watched;

impl McpHttp {
    pub(super) async fn post(
        &self,
        headers: &HeaderMap,
        accepts: Accepts,
        message: &[u8],
        owner: u64,
    ) -> Response<HttpBody> {
        let max_values = self
            .server
            .catalogue
            .executor
            .rules()
            .limits
            .max_message_values();
        match request::read(message, max_values) {
            Incoming::Call { id, mut call } => {
                let asked = ("tools/call", Some(&*call.name));
                let watched = self
                    .server
                    .catalogue
                    .watched(asked, &id, headers, &mut call.meta);
                call.watched = watched;
                match self.asker(headers, "tools/call", &call.meta, owner) {
                    Ok(asker) => self.call(headers, accepts, id, call, asker).await,
                    Err(refusal) => refused(call.watched, refusal, &id),
                }
            }
            Incoming::Request { id, request } => {
                let asked = (request.method(), None);
                let mut meta = request.get_meta().clone();
                let catalogue = &self.server.catalogue;
                let mut watched = catalogue.watched(asked, &id, headers, &mut meta);
                let answered = self.request(headers, accepts, &id, *request, owner, &mut watched);
                match answered.await {
                    Ok(response) => response,
                    Err(refusal) => refused(watched, refusal, &id),
                }
            }
            Incoming::Notification(notification) => {
                let noted = self.note(headers, Some(&notification), owner);
                noted.unwrap_or_else(|refusal| refusal.under(None))
            }
            Incoming::Ignored(_) if message.trim_ascii().is_empty() => {
                let error = ErrorData::parse_error("the body is empty; send one message", None);
                Refusal::new(StatusCode::BAD_REQUEST, error).under(None)
            }
            Incoming::Ignored(why) => {
                debug!(why, "ignored a message");
                let noted = self.note(headers, None, owner);
                noted.unwrap_or_else(|refusal| refusal.under(None))
            }
            Incoming::Refused { id, error } => {
                debug!(problem = %error.message, "a client sent what is no request");
                Refusal::new(StatusCode::BAD_REQUEST, error).under(id.as_ref())
            }
        }
    }

    async fn request(
        &self,
        headers: &HeaderMap,
        accepts: Accepts,
        id: &RequestId,
        request: ClientRequest,
        owner: u64,
        watched: &mut Option<Box<Watched>>,
    ) -> Result<Response<HttpBody>, Refusal> {
        if let ClientRequest::InitializeRequest(request) = request {
            headers::check_method(headers, "initialize", false).map_err(Refusal::mismatch)?;
            let response = self.initialize(accepts, id, &request.params, owner)?;
            told(watched, None);
            return Ok(response);
        }
        if request.method() == "initialize" && !is_modern(headers) {
            let error = service::unknown("initialize");
            return Err(Refusal::new(StatusCode::BAD_REQUEST, error));
        }
        let asker = self.asker(headers, request.method(), request.get_meta(), owner)?;
        if let (ClientRequest::SubscriptionsListenRequest(request), Asker::Alone(_)) =
            (&request, &asker)
        {
            let response = self.listen(accepts, id, &request.params.notifications)?;
            told(watched, None);
            return Ok(response);
        }
        let modern = matches!(asker, Asker::Alone(true));
        match self.answer(request, &asker, modern).await {
            Ok(result) => {
                told(watched, None);
                Ok(reply::message(accepts, answered(id, &result)))
            }
            Err(error) if modern && error.code == ErrorCode::METHOD_NOT_FOUND => {
                Err(Refusal::new(StatusCode::NOT_FOUND, error))
            }
            Err(error) => {
                told(watched, Some(&error));
                Ok(reply::message(accepts, failed(Some(id), &error)))
            }
        }
    }

    /// The answer to what is no call.
    async fn answer(
        &self,
        request: ClientRequest,
        asker: &Asker,
        modern: bool,
    ) -> Result<ServerResult, ErrorData> {
        let catalogue = &self.server.catalogue;
        match (request, asker) {
            (ClientRequest::DiscoverRequest(_), _) => {
                Ok(ServerResult::DiscoverResult(catalogue.discover()))
            }
            (ClientRequest::PingRequest(_), Asker::Session(_)) => {
                Ok(ServerResult::EmptyResult(EmptyResult {}))
            }
            (ClientRequest::ListToolsRequest(request), asker) => {
                if let Asker::Session(session) = asker {
                    catalogue.listed().await;
                    session.saw(catalogue.tools());
                }
                let listed = catalogue.list(request.params, modern).await;
                listed.map(ServerResult::ListToolsResult)
            }
            (ClientRequest::SubscriptionsListenRequest(_), _) => Err(other_era()),
            (ClientRequest::PingRequest(_), _) => Err(other_era()),
            (ClientRequest::CustomRequest(request), Asker::Alone(_))
                if request.method == "initialize" =>
            {
                Err(other_era())
            }
            (ClientRequest::CustomRequest(request), _) => Err(service::unknown(&request.method)),
            (request, _) => service::beside_tools(request.method(), modern),
        }
    }

    /// Begins a session.
    fn initialize(
        &self,
        accepts: Accepts,
        id: &RequestId,
        params: &InitializeRequestParams,
        owner: u64,
    ) -> Result<Response<HttpBody>, Refusal> {
        let catalogue = &self.server.catalogue;
        let answer = catalogue.initialize(&params.protocol_version);
        let life = Life {
            ending: self.shared.life.ending.child_token(),
            calls: self.shared.life.calls.child_token(),
        };
        let version = answer.protocol_version.clone();
        let sessions = &self.shared.sessions;
        let Some(session) = sessions.open(owner, version, catalogue.tools(), life) else {
            let text = "too many sessions are in use; try again later";
            return Err(Refusal::busy(text));
        };
        connected(&params.client_info, &session.version);
        let mut response = reply::message(accepts, answered(id, &answer));
        if let Ok(id) = HeaderValue::try_from(format!("{:032x}", session.id)) {
            response.headers_mut().insert(SESSION, id);
        }
        Ok(response)
    }

    /// What asks for no answer: a notification, or an answer to nothing.
    fn note(
        &self,
        headers: &HeaderMap,
        notification: Option<&ClientNotification>,
        owner: u64,
    ) -> Result<Response<HttpBody>, Refusal> {
        if is_modern(headers) {
            // Without a session there is nothing it could be about: calls are cancelled by closing their stream.
            return Ok(reply::empty(StatusCode::ACCEPTED));
        }
        known_version(headers)?;
        let session = self.shared.sessions.find(headers, owner)?;
        if let Some(ClientNotification::CancelledNotification(cancelled)) = notification
            && let Some(id) = &cancelled.params.request_id
        {
            session.cancel(id);
        }
        Ok(reply::empty(StatusCode::ACCEPTED))
    }

    async fn call(
        &self,
        headers: &HeaderMap,
        accepts: Accepts,
        id: RequestId,
        call: Box<Call>,
        asker: Asker,
    ) -> Response<HttpBody> {
        let catalogue = &self.server.catalogue;
        if matches!(asker, Asker::Alone(_))
            && let Err(problem) = headers::check_name(headers, &call.name)
                .and_then(|()| catalogue.check_mirrored(headers, &call))
        {
            return refused(call.watched, Refusal::mismatch(problem), &id);
        }
        let wants_progress = call.meta.get_progress_token().is_some();
        if accepts.events && (wants_progress || !accepts.json) {
            return self.streamed(id, call, asker);
        }
        let _under_way = self.shared.calls.token();
        let result = match asker {
            Asker::Session(session) => {
                let begun = session.begin(id.clone());
                let result = catalogue.call(call, false, &begun.stop, None).await;
                if accepts.events && begun.is_withdrawn() {
                    // Nobody is to be answered, but HTTP wants a response.
                    return reply::events(HttpBody::whole(""));
                }
                result
            }
            Asker::Alone(modern) => {
                let stop = self.shared.life.calls.child_token();
                catalogue.call(call, modern, &stop, None).await
            }
        };
        reply::message(accepts, answered(&id, &result))
    }
}

/// A request that is watched is answered.
fn told(watched: &mut Option<Box<Watched>>, error: Option<&ErrorData>) {
    match (watched, error) {
        (Some(watched), Some(error)) => watched.failed(error.code.0.to_string()),
        (Some(watched), None) => watched.succeeded(),
        (None, _) => {}
    }
}

fn refused(
    mut watched: Option<Box<Watched>>,
    refusal: Refusal,
    id: &RequestId,
) -> Response<HttpBody> {
    told(&mut watched, Some(&refusal.error));
    refusal.under(Some(id))
}

/// For a method that we know, but not in this revision.
fn other_era() -> ErrorData {
    let text = "this method belongs to another revision of MCP";
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None)
}
