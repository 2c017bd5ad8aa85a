//! Tools that are still on their way: a conversation may begin while the servers of its tools start.
//!
//! A request waits only for what it needs. What needs a certain tool waits for that one
//! ([`Toolbox::wait_for_tool`]): a sentence, the list of names that it is understood by, a call of a
//! name that nobody has yet. A model has to be told of its tools before it is asked, and nobody
//! knows what it will want: it is asked once all tools are there, or a few seconds later
//! ([`Toolbox::wait_for_all`]). Both waits are bounded, and told, so that a voice can say that it
//! takes a moment.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::timeout;

use crate::Toolbox;

/// How long a request waits for a tool that it certainly needs.
const FOR_A_TOOL: Duration = Duration::from_secs(15);
/// How long a model is not asked because there may be more tools. Once that was in vain, no later question waits for the same
/// servers: only when one of them has settled since, or another one is starting.
const FOR_ALL: Duration = Duration::from_secs(5);

/// Knows which tools are still on their way.
///
/// ```
/// use futures::future::{BoxFuture, FutureExt, ready};
/// use toolgate_core::ToolReadiness;
///
/// struct AllThere;
///
/// impl ToolReadiness for AllThere {
///     fn all_offered(&self) -> BoxFuture<'_, ()> {
///         ready(()).boxed()
///     }
///
///     fn starting(&self) -> Vec<String> {
///         Vec::new()
///     }
///
///     fn callable<'a>(&'a self, _tool: &'a str) -> BoxFuture<'a, ()> {
///         ready(()).boxed()
///     }
/// }
/// assert!(AllThere.all_offered().now_or_never().is_some());
/// ```
pub trait ToolReadiness: Send + Sync {
    /// Returns once no further tools are expected: at once, if that is so now.
    fn all_offered(&self) -> BoxFuture<'_, ()>;

    /// The servers that further tools are expected of, in an order that stays.
    fn starting(&self) -> Vec<String>;

    /// Returns once a tool of this name can be called, or it is certain that none can: at once, if that is so now.
    fn callable<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()>;
}

/// The beginning or the end of a wait for tools whose servers are still starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolWait<'a> {
    /// A request waits for this tool; for all tools if there is none.
    Started(Option<&'a str>),
    /// It goes on, with what came or without.
    Ended,
}

/// Is told of waits. Not called at all where nothing has to be waited for.
pub type ToolWaitListener<'a> = &'a mut (dyn FnMut(ToolWait<'_>) + Send);

/// What a toolbox and its clones know of tools that are still on their way.
#[derive(Clone, Default)]
pub(crate) struct Awaited {
    readiness: Arc<OnceLock<Arc<dyn ToolReadiness>>>,
    /// The servers that all tools were last waited for in vain: for the same ones no request waits again.
    in_vain: Arc<Mutex<Vec<String>>>,
}

impl Awaited {
    fn in_vain(&self) -> MutexGuard<'_, Vec<String>> {
        self.in_vain.lock()
    }
}

impl Toolbox {
    /// From now on tools may still be on their way, for this toolbox and its clones. Only the first to be told of counts.
    pub fn wait_for(&self, readiness: Arc<dyn ToolReadiness>) {
        self.awaited().readiness.get_or_init(|| readiness);
    }

    /// False while there may be more tools soon.
    pub fn has_all(&self) -> bool {
        let readiness = self.awaited().readiness.get();
        readiness.is_none_or(|readiness| readiness.all_offered().now_or_never().is_some())
    }

    /// False while it is not certain whether a tool of this name can be called.
    pub fn is_decided(&self, tool: &str) -> bool {
        let readiness = self.awaited().readiness.get();
        readiness.is_none_or(|readiness| readiness.callable(tool).now_or_never().is_some())
    }

    /// Waits a while for a tool of this name.
    pub async fn wait_for_tool(&self, tool: &str, listener: ToolWaitListener<'_>) {
        let Some(readiness) = self.awaited().readiness.get() else {
            return;
        };
        let coming = timeout(FOR_A_TOOL, readiness.callable(tool));
        if told(Some(tool), coming, listener).await.is_err() {
            tracing::warn!(
                tool = %crate::escape(tool),
                waited_s = FOR_A_TOOL.as_secs(),
                "a request goes on without a tool whose server is still starting"
            );
        }
    }

    /// Waits a while until no further tools are expected.
    pub async fn wait_for_all(&self, listener: ToolWaitListener<'_>) {
        let awaited = self.awaited();
        let Some(readiness) = awaited.readiness.get() else {
            return;
        };
        let starting = readiness.starting();
        if !starting.is_empty() && *awaited.in_vain() == starting {
            return;
        }
        let coming = timeout(FOR_ALL, readiness.all_offered());
        if told(None, coming, listener).await.is_err() {
            *awaited.in_vain() = readiness.starting();
            tracing::warn!(
                "a model is asked although servers are still starting: it is not offered their tools yet"
            );
        }
    }
}

async fn told<T>(
    tool: Option<&str>,
    coming: impl Future<Output = T>,
    listener: ToolWaitListener<'_>,
) -> T {
    let mut coming = std::pin::pin!(coming);
    if let Some(came) = coming.as_mut().now_or_never() {
        return came;
    }
    listener(ToolWait::Started(tool));
    let came = coming.await;
    listener(ToolWait::Ended);
    came
}
