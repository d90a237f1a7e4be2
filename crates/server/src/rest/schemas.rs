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
        Changed, Conflict, Crowded, DocumentChanged, Exceeded, Failing, Invalid, Late, LeaseEnded,
        LimitReservationEnded, ListConflict, NoRefund, NoSuchCheck, NoSuchLease,
        NoSuchLimitReservation, NoSuchOverride, NoSuchQuota, NoSuchReservation, NoSuchRule,
        NoSuchService, Protected, QuotaChanged, QuotaExists, RequestIdReused, RequestIdUsed,
        ReservationEnded, TooManyOverrides, Undecided, Unloadable, WithBody,
    },
    rule_limit::RuleLimit,
};
