//! Reads the rows of a batch.

use std::collections::HashMap;

use headgate_quota::{
    QuotaId, RepositoryError, Subject, Units,
    ledger::book::{Account, Balance, Charge, ChargeWrite, Terms},
};

use crate::{
    quotas::{corrupt, unsigned},
    row::Row,
};

pub(super) fn balance(
    row: &Row,
    terms: &HashMap<QuotaId, Terms>,
) -> Result<(Account, Balance), RepositoryError> {
    let read = || {
        let account = account(row)?;
        let (taken, reserved) = (unsigned(row.get("used")?), unsigned(row.get("reserved")?));
        let terms = terms.get(&account.policy).cloned();
        let (threshold_recorded, exceeded_recorded) = recorded_events(row)?;
        let balance = Balance {
            reserved,
            resets: unsigned(row.get("resets")?),
            threshold_recorded,
            exceeded_recorded,
            // Less is used if an older version has reset usage, reservations included.
            ..Balance::new(terms, taken.saturating_sub(reserved), row.time("period_end")?)
        };
        Ok((account, balance))
    };
    read().map_err(corrupt("a usage"))
}

fn recorded_events(row: &Row) -> Result<(bool, bool), sqlx::Error> {
    Ok((row.get("threshold_told")?, row.get("exceeded_told")?))
}

pub(in crate::quotas) fn account(row: &Row) -> Result<Account, sqlx::Error> {
    let policy: String = row.get("policy_id")?;
    let policy = policy.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    Ok(Account { policy, period_name: row.get("period_name")? })
}

pub(super) fn terms(row: &Row) -> Result<(QuotaId, Terms), RepositoryError> {
    let id: String = row.get("id").map_err(corrupt("a policy"))?;
    let invalid = |why: &dyn std::fmt::Display| RepositoryError::Corrupt(format!("{id}: {why}"));
    let text = |column| row.get::<String>(column).map_err(|error| invalid(&error));
    let threshold = row.get::<Option<i64>>("alert_threshold_percent");
    let threshold = threshold.map_err(|error| invalid(&error))?;
    let terms = Terms {
        subject: Subject {
            kind: text("subject_type")?.parse().map_err(|error| invalid(&error))?,
            id: text("subject_id")?,
        },
        period: text("period")?.parse().map_err(|error| invalid(&error))?,
        limit: unsigned(row.get("quota_limit").map_err(|error| invalid(&error))?),
        enabled: row.get("enabled").map_err(|error| invalid(&error))?,
        alert_threshold_percent: threshold.and_then(|percent| percent.try_into().ok()),
    };
    Ok((id.parse().map_err(|error| invalid(&error))?, terms))
}

pub(super) fn charge(row: &Row) -> Result<(Account, String, Charge), RepositoryError> {
    let read = || {
        let charge = Charge {
            amount: unsigned(row.get("amount")?),
            units: Units {
                used: unsigned(row.get("used")?),
                reserved: unsigned(row.get("reserved")?),
                limit: unsigned(row.get("quota_limit")?),
            },
            resets: unsigned(row.get("resets")?),
            refunded: row.get::<Option<i64>>("refunded")?.map(unsigned),
            write: ChargeWrite::Unchanged,
        };
        Ok((account(row)?, row.get("request_id")?, charge))
    };
    read().map_err(corrupt("an increment"))
}
