//! An executor with other than the usual settings.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{Shared, ToolExecutor};
use crate::{Approver, Limits, LogObserver, Observer, Policy, Rules, ToolManager};

/// Collects what a [`ToolExecutor`] needs.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use toolgate_core::{Limits, ToolExecutor, ToolManager};
///
/// let mut limits = Limits::default();
/// limits.timeout = Duration::from_secs(5);
/// let executor = ToolExecutor::builder(Arc::new(ToolManager::new())).limits(limits).build();
/// assert_eq!(executor.rules().limits.timeout, Duration::from_secs(5));
/// ```
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

    /// Other bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Who may use what.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Who is asked when the policy says so.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// One more observer. With the first, the default log is no longer added by itself.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers
            .get_or_insert_default()
            .push(Arc::new(observer));
        self
    }

    /// No observers at all, not even the log: for a look that is no call of anybody's.
    pub fn unobserved(mut self) -> Self {
        self.observers = Some(Vec::new());
        self
    }

    /// Somebody records traces: servers are told which one a call belongs to, also where its caller named none.
    pub fn traced(mut self) -> Self {
        self.traced = true;
        self
    }

    /// Puts it together.
    pub fn build(self) -> ToolExecutor {
        let log = || vec![Arc::new(LogObserver::default()) as Arc<dyn Observer>];
        ToolExecutor {
            shared: Arc::new(Shared {
                observers: self.observers.unwrap_or_else(log),
                manager: self.manager,
                rules: ArcSwap::from_pointee(Rules::new(self.limits, self.policy)),
                approver: self.approver,
                traced: self.traced,
            }),
        }
    }
}
