//! Parts of the API's description that several operations share.

pub(super) mod enums;
mod errors;
mod rule_limit;

pub(super) use self::{
    enums::{
        Algorithm, AuditAction, Condition, Degraded, FailMode, Lease, Match, Period, RuleScope,
        Scope, SubjectType, Window,
    },
    errors::{
        Changed, Conflict, Crowded, DocumentChanged, Exceeded, Failing, Invalid, Late,
        ListConflict, NoRefund, NoSuchOverride, NoSuchQuota, NoSuchReservation, NoSuchRule,
        NoSuchService, Protected, QuotaExists, RequestIdReused, ReservationEnded, TooManyOverrides,
        Undecided, Unloadable, WithBody,
    },
    rule_limit::RuleLimit,
};
