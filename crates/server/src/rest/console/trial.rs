//! `POST /console/try`: whether a rule would apply to sample attributes, before it is saved.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate_api::rate_limits::RuleAdmin;
use headgate_auth::Action;
use headgate_ratelimit::{Draft, usecase::ManageError};
use serde::{Deserialize, Serialize};

use crate::rest::{
    caller::Caller,
    check::WireAttributes,
    error::{ApiError, Detail},
    json,
    json_body::{JsonBody, WireObject},
    rules::WireDraft,
};

/// A rule and the attributes of a check.
#[derive(Deserialize)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
struct WireTrial<'a> {
    #[serde(borrow)]
    rule: WireDraft<'a>,
    #[serde(borrow, default)]
    attributes: WireAttributes<'a>,
}

/// Whether the rule applies, and why.
#[derive(Serialize)]
struct WireTried {
    applies: bool,
    why: String,
    /// The limit that the check would have.
    limit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_why: Option<String>,
    /// What the rule would count.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
}

pub(super) async fn trial(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadRules).await?;
    let WireTrial { rule, attributes } = body.parse()?;
    let spec = Draft::from(rule).validate(None).map_err(ManageError::Invalid)?;
    let attributes = attributes.read().map_err(ApiError::Invalid)?;
    let tried = admin.explain.explain_draft(spec, &attributes)?;
    let tried =
        tried.ok_or_else(|| ApiError::Internal("a rule that is not explained".to_owned()))?;
    Ok(json::respond(&WireTried {
        applies: tried.applies,
        why: tried.why,
        limit: tried.rule.units(),
        limit_why: tried.limit.map(|limit| limit.why),
        subject: tried.subject,
    }))
}

impl<'a> WireObject<'a> for WireTrial<'a> {
    fn problems(self) -> Vec<Detail> {
        let rule = self.rule.problems().into_iter();
        rule.chain(self.attributes.read().err().into_iter().flatten()).collect()
    }
}
