//! `RateLimitService`: every handler authenticates, then acts.

use std::sync::Arc;

use headgate_api::{
    Access, Namespace,
    rate_limits::{MeteredChecks, RuleAdmin},
};
use headgate_auth::Action;
use tonic::{Request, Response, Streaming};

use super::{
    caller::may,
    check,
    error::CallError,
    holders,
    metered::{Metered, metered},
    overrides, places,
    proto::{
        AcquireRequest, AcquireResponse, CancelReservationRequest, CancelReservationResponse,
        CheckRateLimitRequest, CheckRateLimitResponse, CheckRateLimitsRequest,
        CheckRateLimitsResponse, CreateRuleRequest, CreateRuleResponse, DeleteOverrideRequest,
        DeleteOverrideResponse, DeleteRuleRequest, DeleteRuleResponse, EndLeaseRequest,
        EndLeaseResponse, GetOverrideRequest, GetOverrideResponse, GetReservationRequest,
        GetReservationResponse, GetRuleRequest, GetRuleResponse, GetUsageRequest, GetUsageResponse,
        ListHoldersRequest, ListHoldersResponse, ListOverridesRequest, ListOverridesResponse,
        ListRulesRequest, ListRulesResponse, RefundCheckRequest, RefundCheckResponse,
        ReleaseLeaseRequest, ReleaseLeaseResponse, RenewLeaseRequest, RenewLeaseResponse,
        ReserveRequest, ReserveResponse, ResetLimitRequest, ResetLimitResponse, SetOverrideRequest,
        SetOverrideResponse, SettleReservationRequest, SettleReservationResponse,
        UpdateRuleRequest, UpdateRuleResponse, UseReservationRequest, UseReservationResponse,
        rate_limit_service_server::RateLimitService,
    },
    reservations,
    reset::Reset,
    rules, usage,
    wire::Answer,
};

/// The handlers of rate limits.
pub(super) struct RateLimitHandlers {
    pub(super) checks: Arc<MeteredChecks>,
    pub(super) rules: Arc<RuleAdmin>,
    pub(super) access: Arc<Access>,
}

#[tonic::async_trait]
impl RateLimitService for RateLimitHandlers {
    async fn check_rate_limit(
        &self,
        request: Request<CheckRateLimitRequest>,
    ) -> Answer<CheckRateLimitResponse> {
        Ok(Response::new(check::check(&self.checks, &self.rules.catalog, request.get_ref()).await?))
    }

    async fn create_rule(&self, request: Request<CreateRuleRequest>) -> Answer<CreateRuleResponse> {
        let author = may(&self.access, &request, Action::WriteRules).await?;
        let draft = rules::new_draft(request.into_inner())?;
        let rule = self.rules.rules.create(draft, &author).await.map_err(CallError::from)?;
        Ok(Response::new(CreateRuleResponse { rule: Some((&rule).into()) }))
    }

    async fn get_rule(&self, request: Request<GetRuleRequest>) -> Answer<GetRuleResponse> {
        may(&self.access, &request, Action::ReadRules).await?;
        let id = rules::id(&request.get_ref().rule_id)?;
        let rule = self.rules.rules.get(id).await.map_err(CallError::from)?;
        Ok(Response::new(GetRuleResponse { rule: Some((&rule).into()) }))
    }

    async fn get_usage(&self, request: Request<GetUsageRequest>) -> Answer<GetUsageResponse> {
        may(&self.access, &request, Action::ReadUsage).await?;
        let wire = request.get_ref();
        let identifier = Some(wire.identifier.as_str()).filter(|text| !text.is_empty());
        let usage = self.rules.usage.of(rules::id(&wire.rule_id)?, identifier).await;
        let usage = usage.map_err(CallError::from)?;
        Ok(Response::new(usage::shown(&usage)?))
    }

    async fn reset_limit(&self, request: Request<ResetLimitRequest>) -> Answer<ResetLimitResponse> {
        let author = may(&self.access, &request, Action::ResetCounters).await?;
        let Reset { scope, subject, reason } = Reset::try_from(request.get_ref())?;
        let reset = self.rules.reset(scope, subject, reason, author).await;
        reset.map_err(CallError::from)?;
        Ok(Response::new(ResetLimitResponse { success: true }))
    }

    async fn list_rules(&self, request: Request<ListRulesRequest>) -> Answer<ListRulesResponse> {
        may(&self.access, &request, Action::ReadRules).await?;
        let (filter, page) = rules::listing(request.get_ref())?;
        let (_, listed) = self.rules.rules.list(&filter, page).await.map_err(CallError::from)?;
        Ok(Response::new((&listed).into()))
    }

    async fn update_rule(&self, request: Request<UpdateRuleRequest>) -> Answer<UpdateRuleResponse> {
        let author = may(&self.access, &request, Action::WriteRules).await?;
        let id = rules::id(&request.get_ref().rule_id)?;
        let draft = rules::changed_draft(request.into_inner())?;
        let rule = self.rules.rules.update(id, draft, &author).await.map_err(CallError::from)?;
        Ok(Response::new(UpdateRuleResponse { rule: Some((&rule).into()) }))
    }

    async fn delete_rule(&self, request: Request<DeleteRuleRequest>) -> Answer<DeleteRuleResponse> {
        let author = may(&self.access, &request, Action::DeleteRules).await?;
        let id = rules::id(&request.get_ref().rule_id)?;
        self.rules.rules.delete(id, &author).await.map_err(CallError::from)?;
        Ok(Response::new(DeleteRuleResponse { success: true }))
    }

    async fn reserve(&self, request: Request<ReserveRequest>) -> Answer<ReserveResponse> {
        let catalog = &self.rules.catalog;
        Ok(Response::new(reservations::reserve(&self.checks, catalog, request.get_ref()).await?))
    }

    async fn use_reservation(
        &self,
        request: Request<UseReservationRequest>,
    ) -> Answer<UseReservationResponse> {
        Ok(Response::new(reservations::spend(&self.checks, request.get_ref()).await?))
    }

    type MeterReservationStream = Metered<UseReservationResponse>;

    async fn meter_reservation(
        &self,
        request: Request<Streaming<UseReservationRequest>>,
    ) -> Answer<Self::MeterReservationStream> {
        let checks = Arc::clone(&self.checks);
        Ok(Response::new(metered(request.into_inner(), Namespace::RateLimit, move |wire| {
            let checks = Arc::clone(&checks);
            async move { reservations::spend(&checks, &wire).await }
        })))
    }

    async fn settle_reservation(
        &self,
        request: Request<SettleReservationRequest>,
    ) -> Answer<SettleReservationResponse> {
        Ok(Response::new(reservations::settle(&self.checks, request.get_ref()).await?))
    }

    async fn cancel_reservation(
        &self,
        request: Request<CancelReservationRequest>,
    ) -> Answer<CancelReservationResponse> {
        Ok(Response::new(reservations::cancel(&self.checks, request.get_ref()).await?))
    }

    async fn get_reservation(
        &self,
        request: Request<GetReservationRequest>,
    ) -> Answer<GetReservationResponse> {
        Ok(Response::new(reservations::get(&self.checks, request.get_ref()).await?))
    }

    async fn acquire(&self, request: Request<AcquireRequest>) -> Answer<AcquireResponse> {
        let catalog = &self.rules.catalog;
        Ok(Response::new(places::acquire(&self.checks, catalog, request.get_ref()).await?))
    }

    async fn renew_lease(&self, request: Request<RenewLeaseRequest>) -> Answer<RenewLeaseResponse> {
        Ok(Response::new(places::renew(&self.checks, request.get_ref()).await?))
    }

    async fn release_lease(
        &self,
        request: Request<ReleaseLeaseRequest>,
    ) -> Answer<ReleaseLeaseResponse> {
        Ok(Response::new(places::release(&self.checks, request.get_ref()).await?))
    }

    async fn list_holders(
        &self,
        request: Request<ListHoldersRequest>,
    ) -> Answer<ListHoldersResponse> {
        may(&self.access, &request, Action::ReadUsage).await?;
        let catalog = &self.rules.catalog;
        Ok(Response::new(holders::list(&self.checks, catalog, request.get_ref()).await?))
    }

    async fn end_lease(&self, request: Request<EndLeaseRequest>) -> Answer<EndLeaseResponse> {
        let author = may(&self.access, &request, Action::ResetCounters).await?;
        let done = holders::end(&self.checks, &self.rules, request.get_ref(), author).await?;
        Ok(Response::new(done))
    }

    async fn refund_check(
        &self,
        request: Request<RefundCheckRequest>,
    ) -> Answer<RefundCheckResponse> {
        let catalog = &self.rules.catalog;
        Ok(Response::new(reservations::refund(&self.checks, catalog, request.get_ref()).await?))
    }

    async fn check_rate_limits(
        &self,
        request: Request<CheckRateLimitsRequest>,
    ) -> Answer<CheckRateLimitsResponse> {
        let answer = check::check_all(&self.checks, &self.rules.catalog, request.get_ref()).await?;
        Ok(Response::new(answer))
    }

    async fn set_override(
        &self,
        request: Request<SetOverrideRequest>,
    ) -> Answer<SetOverrideResponse> {
        let author = may(&self.access, &request, Action::WriteRules).await?;
        let draft = overrides::draft(request.into_inner());
        let set = self.rules.overrides.set(draft, &author).await.map_err(CallError::from)?;
        let (one, created) = (overrides::shown(&set.0, &self.rules.catalog), set.1);
        Ok(Response::new(SetOverrideResponse { r#override: Some(one), created }))
    }

    async fn get_override(
        &self,
        request: Request<GetOverrideRequest>,
    ) -> Answer<GetOverrideResponse> {
        may(&self.access, &request, Action::ReadRules).await?;
        let id = overrides::id(&request.get_ref().override_id)?;
        let one = self.rules.overrides.get(id).await.map_err(CallError::from)?;
        let one = overrides::shown(&one, &self.rules.catalog);
        Ok(Response::new(GetOverrideResponse { r#override: Some(one) }))
    }

    async fn list_overrides(
        &self,
        request: Request<ListOverridesRequest>,
    ) -> Answer<ListOverridesResponse> {
        let author = may(&self.access, &request, Action::ReadRules).await?;
        let (filter, page) = overrides::listing(request.get_ref(), author.at)?;
        let listed = self.rules.overrides.list(&filter, page).await.map_err(CallError::from)?;
        Ok(Response::new(overrides::page(&listed, &self.rules.catalog)))
    }

    async fn delete_override(
        &self,
        request: Request<DeleteOverrideRequest>,
    ) -> Answer<DeleteOverrideResponse> {
        let author = may(&self.access, &request, Action::WriteRules).await?;
        let id = overrides::id(&request.get_ref().override_id)?;
        self.rules.overrides.delete(id, &author).await.map_err(CallError::from)?;
        Ok(Response::new(DeleteOverrideResponse { success: true }))
    }
}
