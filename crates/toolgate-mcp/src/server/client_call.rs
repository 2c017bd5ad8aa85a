//! Runs calls for clients: with their scope, trace, progress and cancellation, and with their
//! answers to the questions of servers.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::time::sleep;
use toolgate_core::{
    ContentMethod, ElicitationListener, Origin, QuestionError, ToolCall, ToolOutcome,
};

use super::call_reports::{CallReports, relay_reports};
use super::client_message::RequestMeta;
use super::extension_notices::ExtensionNotices;
use super::jsonrpc::RequestError;
use super::methods::{RequestContext, SERVER_INFO};
use super::questions::{AskedClient, AskingCall, CallStage, QuestionRound, can_be_asked};
use super::service::McpService;
use super::session_questions::SessionQuestions;
use super::suspended::{ClientAnswers, RequestBinding, SuspensionScope};
use super::tasks::TaskOffer;
use crate::extensions::{declared_by, may_have_requests};

// The standard allows 55 characters; later versions may add some.
const MAX_TRACE_LEN: usize = 128;

/// What a client gets for its call.
pub(super) enum ClientOutcome {
    Finished(ToolOutcome),
    // Not the end: questions that come first, or a task.
    Interim(Value),
}

/// What a client asked for, to recognize it when it comes back with answers.
pub(super) struct RequestIdentity<'a> {
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    pub(super) arguments: Option<&'a Map<String, Value>>,
}

impl RequestIdentity<'_> {
    fn to_value(&self) -> Value {
        json!([self.method, self.target, self.arguments])
    }
}

impl McpService {
    /// Continues a call that waits for the client's answers; `None` if there are none.
    pub(super) async fn resume_for_client(
        self: &Arc<Self>,
        answers: &mut ClientAnswers,
        identity: &RequestIdentity<'_>,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
        offer: Option<&TaskOffer>,
    ) -> Result<Option<ClientOutcome>, RequestError> {
        let state = answers.state.take();
        let Some(state) = state.filter(|_| context.lifecycle.is_modern()) else {
            return Ok(None);
        };
        let binding = self.binding(identity, context);
        let waiting = self.shared.suspended.resume(&state, &binding).await?;
        let call = waiting.answer(std::mem::take(&mut answers.responses));
        // Each request says again what its client wants.
        call.reports.set_log_level(meta.log_level()?);
        let running = self.run_asking(call, binding, meta, context, offer);
        Ok(Some(running.await))
    }

    /// Runs a call under the client's scope and trace, relays its progress, and lets its server ask
    /// the client, if that is possible. `answers` came with the request, before any question. With
    /// an offer, the call may become a task.
    pub(super) async fn execute_for_client(
        self: &Arc<Self>,
        call: ToolCall,
        answers: ClientAnswers,
        identity: &RequestIdentity<'_>,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
        offer: Option<&TaskOffer>,
    ) -> ClientOutcome {
        let (call, notices) = self.prepare_for_client(call, meta, context);
        let log_level = context.wanted_log_level(meta);
        // A completion is asked for with every key that is pressed; no person answers questions
        // then.
        let may_ask = identity.method != ContentMethod::Complete.as_str();
        let capabilities = match offer {
            Some(_) => Some(Arc::new(meta.capabilities())),
            None => context.askable_capabilities(meta).filter(|_| may_ask),
        };
        if let Some(capabilities) = capabilities {
            // A later request of a client of 2026-07-28 may want messages that this one doesn't.
            let is_modern = context.lifecycle.is_modern();
            let log_level = log_level.or_else(|| is_modern.then(Arc::default));
            let client = context.asked_client(capabilities);
            let executor = self.executor.clone();
            let reports = CallReports::new(log_level, notices);
            let mut call = AskingCall::new(executor, call, client, reports);
            call.early_answers = answers.responses;
            let binding = self.binding(identity, context);
            // Boxed because few clients need it, and it would make the future of each call larger.
            return Box::pin(self.run_asking(call, binding, meta, context, offer)).await;
        }
        let call = call.cancellation(context.stop.clone());
        let token = meta.progress_token();
        let wants_reports = token.is_some() || log_level.is_some();
        ClientOutcome::Finished(match context.sink.filter(|_| wants_reports) {
            None => self.executor.execute(call).await,
            Some(sink) => {
                let reports = CallReports::new(log_level, notices);
                let running = self.executor.execute(reports.listen(call));
                Box::pin(relay_reports(running, &reports, token.as_ref(), sink)).await
            }
        })
    }

    /// Runs a call as a task from the beginning, as a client of 2025-11-25 wants it.
    pub(super) async fn call_as_task(
        self: &Arc<Self>,
        call: ToolCall,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
        offer: &TaskOffer,
    ) -> Result<Value, RequestError> {
        let (call, notices) = self.prepare_for_client(call, meta, context);
        let questions = context.questions.map(SessionQuestions::capabilities);
        let capabilities = questions.unwrap_or_default();
        let (executor, client) = (self.executor.clone(), context.asked_client(capabilities));
        let call = AskingCall::new(executor, call, client, CallReports::new(None, notices));
        match self.start_task(call, offer, context).await {
            Ok(started) => {
                if let Some(notices) = context.notices {
                    notices.follow_task(&started, meta.progress_token());
                }
                Ok(started.to_result(self))
            }
            Err(_unstarted) => {
                let text = "too many tasks are kept; try again later, or without a task";
                Err(RequestError::new(RequestError::INTERNAL_ERROR, text))
            }
        }
    }

    /// Also returns where notifications of extensions wait for the client, if it declares any.
    pub(super) fn prepare_for_client(
        &self,
        call: ToolCall,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
    ) -> (ToolCall, Option<Arc<ExtensionNotices>>) {
        let call = call
            .origin(Origin::Mcp)
            .scope(self.scope.clone())
            .client_may_approve(self.options.clients_may_approve);
        let call = with_trace(call.meta(meta.for_server()), meta);
        let Some(extensions) = context.declared_extensions(meta) else {
            return (call, None);
        };
        let has_messages = extensions.keys().any(|id| may_have_requests(id));
        let call = call.extensions(Arc::new(extensions));
        if !has_messages {
            return (call, None);
        }
        let lasting = context
            .questions
            .map(|session| Arc::clone(&session.extension_notices));
        let notices = Arc::new(ExtensionNotices::new(context.client, lasting));
        let listener = Arc::clone(&notices);
        (call.on_extension_notification(listener), Some(notices))
    }

    async fn run_asking(
        self: &Arc<Self>,
        call: AskingCall,
        binding: RequestBinding,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
        offer: Option<&TaskOffer>,
    ) -> ClientOutcome {
        let reports = Arc::clone(&call.reports);
        let running = async {
            match context.questions.zip(context.sink) {
                Some((questions, sink)) => {
                    let limit = self.executor.rules().limits.approval_timeout;
                    let stopped = context.stop.cancelled();
                    ClientOutcome::Finished(questions.run(call, stopped, limit, sink).await)
                }
                None => self.run_until_it_asks(call, binding, context, offer).await,
            }
        };
        match context.sink {
            None => running.await,
            Some(sink) => {
                let token = meta.progress_token();
                relay_reports(running, &reports, token.as_ref(), sink).await
            }
        }
    }

    async fn run_until_it_asks(
        self: &Arc<Self>,
        mut call: AskingCall,
        binding: RequestBinding,
        context: &RequestContext<'_>,
        offer: Option<&TaskOffer>,
    ) -> ClientOutcome {
        let mut patience = offer.map(|offer| (offer, Box::pin(sleep(offer.after))));
        loop {
            let stop = call.stop.clone();
            let too_slow = async {
                match &mut patience {
                    Some((offer, patience)) => {
                        patience.await;
                        *offer
                    }
                    None => std::future::pending().await,
                }
            };
            let stage = tokio::select! {
                biased;
                stage = call.proceed() => stage,
                offer = too_slow, if !stop.is_cancelled() => {
                    patience = None;
                    match self.start_task(call, offer, context).await {
                        Ok(started) => return ClientOutcome::Interim(started.to_result(self)),
                        // There are too many tasks, so this client waits.
                        Err(unstarted) => call = *unstarted,
                    }
                    continue;
                }
                () = context.stop.cancelled(), if !stop.is_cancelled() => {
                    stop.cancel();
                    continue;
                }
            };
            let round = match stage {
                CallStage::Finished(outcome) => return ClientOutcome::Finished(outcome),
                CallStage::Asks(round) => round,
            };
            let Some(round) = call.answer_early(round) else {
                continue;
            };
            if stop.is_cancelled() || round.answers.is_closed() {
                drop(round.answers.send(Err(QuestionError::Gone)));
                continue;
            }
            match self.suspend(call, round, binding.clone(), context) {
                Ok(result) => return ClientOutcome::Interim(result),
                Err(unasked) => call = *unasked,
            }
        }
    }

    /// Keeps the call until the client's next request brings the answers. Gives it back if too
    /// many calls wait already.
    fn suspend(
        &self,
        call: AskingCall,
        round: QuestionRound,
        binding: RequestBinding,
        context: &RequestContext<'_>,
    ) -> Result<Value, Box<AskingCall>> {
        let scope = SuspensionScope {
            limit: self.executor.rules().limits.approval_timeout,
            ending: context.ending,
            tasks: context.tasks,
        };
        // Between two requests nobody takes messages.
        call.reports.set_log_level(None);
        let mut result = self
            .shared
            .suspended
            .suspend(call, round, binding, &scope)?;
        result["_meta"] = json!({ SERVER_INFO: self.result_meta[SERVER_INFO] });
        Ok(result)
    }

    fn binding(
        &self,
        identity: &RequestIdentity<'_>,
        context: &RequestContext<'_>,
    ) -> RequestBinding {
        RequestBinding {
            owner: context.owner,
            caller: self.scope.caller().map(str::to_owned),
            request: identity.to_value(),
        }
    }
}

impl RequestContext<'_> {
    fn asked_client(&self, capabilities: Arc<Value>) -> AskedClient {
        let notices = self.notices.filter(|_| self.has_legacy_tasks());
        let listener = notices.map(|notices| Arc::clone(notices) as Arc<dyn ElicitationListener>);
        AskedClient {
            id: self.client,
            capabilities,
            listener: listener.as_ref().map(Arc::downgrade),
        }
    }

    /// What the client supports, if it can be asked while or between its requests.
    fn askable_capabilities(&self, meta: &RequestMeta) -> Option<Arc<Value>> {
        let capabilities = match self.questions {
            Some(questions) if self.sink.is_some() => questions.capabilities(),
            None if self.lifecycle.is_modern() => Arc::new(meta.capabilities()),
            _ => return None,
        };
        can_be_asked(&capabilities).then_some(capabilities)
    }
}

impl RequestContext<'_> {
    /// The extensions that the client declares; `None` if it declares none.
    pub(super) fn declared_extensions(&self, meta: &RequestMeta) -> Option<Map<String, Value>> {
        let declared = match self.questions {
            Some(questions) => declared_by(&questions.capabilities()),
            None => meta.declared_extensions(),
        };
        (!declared.is_empty()).then_some(declared)
    }
}

fn with_trace(call: ToolCall, meta: &RequestMeta) -> ToolCall {
    match meta.trace() {
        (Some(parent), state) if parent.len() <= MAX_TRACE_LEN => {
            let call = call.trace_parent(parent);
            match state {
                Some(state) => call.trace_state(state),
                None => call,
            }
        }
        _ => call,
    }
}
