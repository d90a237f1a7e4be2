use super::Role;

/// Something that a caller asks for, on whichever surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Say which rules would decide, and how, without counting.
    Explain,
    /// See rules.
    ReadRules,
    /// Create or change rules.
    WriteRules,
    /// Delete rules.
    DeleteRules,
    /// See what subjects have used.
    ReadUsage,
    /// Give subjects back what they have used.
    ResetCounters,
    /// See who changed what.
    ReadAudit,
    /// See what happened to quotas.
    ReadEvents,
    /// See quota policies, and what is used of them.
    ReadQuotas,
    /// Create or change quota policies.
    WriteQuotas,
    /// Use something of a quota, or ask whether that would be admitted.
    UseQuotas,
    /// Delete quota policies.
    DeleteQuotas,
    /// Give subjects their whole quota back.
    ResetQuotas,
    /// Ask whether requests may go on, as Envoy does, where that needs a token.
    LimitRequests,
    /// See how the server is doing.
    Watch,
    /// See who is limited, by name.
    SeeSubjects,
    /// See the documents of services, and who runs on which.
    ReadServices,
    /// Change the documents of services.
    WriteServices,
}

impl Action {
    /// Every action.
    pub(crate) const ALL: [Self; 18] = [
        Self::Explain,
        Self::ReadRules,
        Self::WriteRules,
        Self::DeleteRules,
        Self::ReadUsage,
        Self::ResetCounters,
        Self::ReadAudit,
        Self::ReadEvents,
        Self::ReadQuotas,
        Self::WriteQuotas,
        Self::UseQuotas,
        Self::DeleteQuotas,
        Self::ResetQuotas,
        Self::LimitRequests,
        Self::Watch,
        Self::SeeSubjects,
        Self::ReadServices,
        Self::WriteServices,
    ];

    /// What programs call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Explain => "explain",
            Self::ReadRules => "read_rules",
            Self::WriteRules => "write_rules",
            Self::DeleteRules => "delete_rules",
            Self::ReadUsage => "read_usage",
            Self::ResetCounters => "reset_counters",
            Self::ReadAudit => "read_audit",
            Self::ReadEvents => "read_events",
            Self::ReadQuotas => "read_quotas",
            Self::WriteQuotas => "write_quotas",
            Self::UseQuotas => "use_quotas",
            Self::DeleteQuotas => "delete_quotas",
            Self::ResetQuotas => "reset_quotas",
            Self::LimitRequests => "limit_requests",
            Self::Watch => "watch",
            Self::SeeSubjects => "see_subjects",
            Self::ReadServices => "read_services",
            Self::WriteServices => "write_services",
        }
    }

    /// The least role that may do this: the only role table there is. Checks are not in it, since
    /// they need no token, except Envoy's where the operator says so.
    pub(crate) const fn needs(self) -> Role {
        match self {
            Self::Explain
            | Self::ReadRules
            | Self::ReadUsage
            | Self::ReadAudit
            | Self::ReadEvents
            | Self::ReadQuotas
            | Self::LimitRequests
            | Self::Watch
            | Self::ReadServices => Role::Auditor,
            Self::WriteRules
            | Self::ResetCounters
            | Self::WriteQuotas
            | Self::UseQuotas
            | Self::SeeSubjects
            | Self::WriteServices => Role::Operator,
            Self::DeleteRules | Self::DeleteQuotas | Self::ResetQuotas => Role::Admin,
        }
    }
}
