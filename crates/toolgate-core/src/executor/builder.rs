//! [`ToolExecutorBuilder`]: creates a [`ToolExecutor`] with its own limits, policy and observers.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;

use super::{ExecutorShared, ToolExecutor};
use crate::{Approver, ExecutionRules, Limits, LogObserver, Observer, Policy, ToolManager};

/// Builds a [`ToolExecutor`] with its own limits, policy, approver and observers.
#[must_use]
pub struct ToolExecutorBuilder {
    manager: Arc<ToolManager>,
    limits: Limits,
    policy: Policy,
    approver: Option<Arc<dyn Approver>>,
    observers: Option<Vec<Arc<dyn Observer>>>,
    traced: bool,
}

impl ToolExecutorBuilder {
    pub(super) fn new(manager: Arc<ToolManager>) -> Self {
        Self {
            manager,
            limits: Limits::default(),
            policy: Policy::default(),
            approver: None,
            observers: None,
            traced: false,
        }
    }

    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets who is asked for approval. Without an approver, calls that need approval are denied.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Adds an observer. The first one replaces the default log.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers
            .get_or_insert_default()
            .push(Arc::new(observer));
        self
    }

    /// Removes all observers, including the default log. For calls on nobody's behalf,
    /// such as health checks.
    pub fn without_observers(mut self) -> Self {
        self.observers = Some(Vec::new());
        self
    }

    /// Declares that an observer records traces. Servers then receive a `traceparent` even if
    /// the caller sent none.
    pub fn traced(mut self) -> Self {
        self.traced = true;
        self
    }

    pub fn build(self) -> ToolExecutor {
        let log = || vec![Arc::new(LogObserver::default()) as Arc<dyn Observer>];
        ToolExecutor {
            shared: Arc::new(ExecutorShared {
                observers: self.observers.unwrap_or_else(log),
                manager: self.manager,
                rules: ArcSwap::from_pointee(ExecutionRules::new(self.limits, self.policy)),
                approver: self.approver,
                traced: self.traced,
                leaving: CancellationToken::new(),
            }),
        }
    }
}
