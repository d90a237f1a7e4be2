//! Parts of the API's description that several operations share.

pub(super) mod enums;
mod errors;

pub(super) use self::{
    enums::{
        Algorithm, AuditAction, Condition, Degraded, FailMode, Match, Period, Scope, SubjectType,
        Window,
    },
    errors::{
        Changed, Conflict, Crowded, DocumentChanged, Exceeded, Failing, Invalid, Late,
        ListConflict, NoSuchQuota, NoSuchRule, NoSuchService, Protected, QuotaExists,
        RequestIdReused, Undecided, Unloadable, WithBody,
    },
};
