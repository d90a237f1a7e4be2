//! `POST /console/preview`: the requests that a rule would admit, before it is saved.

use std::time::Duration;

use axum::response::Response;
use headgate_auth::Action;
use headgate_console::preview::{Point, Preview};
use headgate_ratelimit::{Draft, usecase::ManageError};
use serde::Serialize;

use crate::rest::{caller::Caller, error::ApiError, json, json_body::JsonBody, rules::WireDraft};

/// Units admitted over two windows: points of milliseconds, units requested, units admitted.
#[derive(Serialize)]
struct WirePreview {
    /// Maximum number of units at once.
    capacity: u64,
    window_seconds: u32,
    burst: Vec<(u64, u64, u64)>,
    steady: Vec<(u64, u64, u64)>,
}

pub(super) async fn preview(caller: Caller, body: JsonBody) -> Result<Response, ApiError> {
    caller.may(Action::ReadRules).await?;
    let draft: WireDraft<'_> = body.parse()?;
    let spec = Draft::from(draft).validate(None).map_err(ManageError::Invalid)?;
    let limit = spec.engine_limit().map_err(|error| ApiError::Internal(error.to_string()))?;
    let window = Duration::from_secs(spec.window_seconds.into());
    let shown = Preview::of(&limit, spec.limit.into(), window);
    let points = |points: Vec<Point>| {
        let point = |it: &Point| (it.after.as_millis() as u64, it.asked, it.admitted);
        points.iter().map(point).collect()
    };
    Ok(json::respond(&WirePreview {
        capacity: limit.capacity(),
        window_seconds: spec.window_seconds,
        burst: points(shown.burst),
        steady: points(shown.steady),
    }))
}
