use crate::Role;

/// An operation that needs a permission, the same in every API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Explain which rules would decide a check, and how, without counting it.
    Explain,
    /// See rules.
    ReadRules,
    /// Create or change rules.
    WriteRules,
    /// Delete rules.
    DeleteRules,
    /// See the usage of subjects.
    ReadUsage,
    /// Reset the counters of subjects.
    ResetCounters,
    /// Read the audit log.
    ReadAudit,
    /// Read quota events.
    ReadEvents,
    /// See quota policies and their usage.
    ReadQuotas,
    /// Create or change quota policies.
    WriteQuotas,
    /// Consume a quota, or check whether that would be admitted.
    UseQuotas,
    /// Delete quota policies.
    DeleteQuotas,
    /// Reset the usage of a quota.
    ResetQuotas,
    /// Check limits as Envoy does, where `envoy.auth` requires a token.
    LimitRequests,
    /// See the state of the server.
    Watch,
    /// See which subjects are limited, by name.
    SeeSubjects,
    /// See the documents of services, and which instances run on which.
    ReadServices,
    /// Change the documents of services.
    WriteServices,
    /// Read the configuration of the server again.
    ReloadConfig,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 19] = [
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
        Self::ReloadConfig,
    ];

    /// Returns the name in the API, such as `read_rules`.
    pub const fn name(self) -> &'static str {
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
            Self::ReloadConfig => "reload_config",
        }
    }

    /// Returns the lowest role that may do this. This is the only table of roles.
    ///
    /// Checks need no token and are not in it, except for Envoy's where `envoy.auth` requires one.
    pub const fn needs(self) -> Role {
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
            Self::DeleteRules | Self::DeleteQuotas | Self::ResetQuotas | Self::ReloadConfig => {
                Role::Admin
            }
        }
    }
}
