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
}

impl Action {
    #[cfg(test)]
    pub(super) const ALL: [Self; 14] = [
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
    ];

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
            | Self::LimitRequests => Role::Auditor,
            Self::WriteRules | Self::ResetCounters | Self::WriteQuotas | Self::UseQuotas => {
                Role::Operator
            }
            Self::DeleteRules | Self::DeleteQuotas | Self::ResetQuotas => Role::Admin,
        }
    }
}
