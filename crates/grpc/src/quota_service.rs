//! `QuotaService`: every handler authenticates, then acts.

mod messages;
mod reservations;

use std::sync::Arc;

use headgate_api::{
    Access, Namespace,
    quotas::{QuotaRefusal, QuotaServices},
};
use headgate_auth::Action;
use headgate_quota::SettledFor;
use tonic::{Request, Response, Streaming};

use super::{
    caller::{StreamCaller, may},
    error::CallError,
    metered::{Metered, metered},
    proto::quota::{
        CancelQuotaReservationRequest, CancelQuotaReservationResponse, CheckQuotaRequest,
        CheckQuotaResponse, CreateQuotaPolicyRequest, CreateQuotaPolicyResponse,
        DeleteQuotaPolicyRequest, DeleteQuotaPolicyResponse, GetQuotaHistoryRequest,
        GetQuotaHistoryResponse, GetQuotaPolicyRequest, GetQuotaPolicyResponse,
        GetQuotaReservationRequest, GetQuotaReservationResponse, GetQuotaUsageRequest,
        GetQuotaUsageResponse, IncrementQuotaUsageRequest, IncrementQuotaUsageResponse,
        ListQuotaPoliciesRequest, ListQuotaPoliciesResponse, RefundQuotaUsageRequest,
        RefundQuotaUsageResponse, ReserveQuotaRequest, ReserveQuotaResponse,
        ResetQuotaUsageRequest, ResetQuotaUsageResponse, SettleQuotaReservationRequest,
        SettleQuotaReservationResponse, UpdateQuotaPolicyRequest, UpdateQuotaPolicyResponse,
        UseQuotaReservationRequest, UseQuotaReservationResponse,
        quota_service_server::QuotaService,
    },
    wire::{Answer, time},
};

/// The handlers of quotas.
pub(super) struct QuotaHandlers {
    pub(super) quotas: Arc<QuotaServices>,
    pub(super) access: Arc<Access>,
}

/// Converts the error of a use case.
fn call_error(error: impl Into<QuotaRefusal>) -> CallError {
    error.into().into()
}

#[tonic::async_trait]
impl QuotaService for QuotaHandlers {
    async fn create_quota_policy(
        &self,
        request: Request<CreateQuotaPolicyRequest>,
    ) -> Answer<CreateQuotaPolicyResponse> {
        let author = may(&self.access, &request, Action::WriteQuotas).await?;
        let draft = messages::new_draft(request.into_inner());
        let policy = self.quotas.policies.create(draft, &author).await.map_err(call_error)?;
        Ok(Response::new(CreateQuotaPolicyResponse { policy: Some((&policy).into()) }))
    }

    async fn get_quota_policy(
        &self,
        request: Request<GetQuotaPolicyRequest>,
    ) -> Answer<GetQuotaPolicyResponse> {
        may(&self.access, &request, Action::ReadQuotas).await?;
        let id = messages::id("id", &request.get_ref().id)?;
        let policy = self.quotas.policies.get(&id).await.map_err(call_error)?;
        Ok(Response::new(GetQuotaPolicyResponse { policy: Some((&policy).into()) }))
    }

    async fn list_quota_policies(
        &self,
        request: Request<ListQuotaPoliciesRequest>,
    ) -> Answer<ListQuotaPoliciesResponse> {
        may(&self.access, &request, Action::ReadQuotas).await?;
        let (filter, page) = messages::listing(request.get_ref())?;
        let listed = self.quotas.policies.list(&filter, page).await.map_err(call_error)?;
        Ok(Response::new((&listed).into()))
    }

    async fn update_quota_policy(
        &self,
        request: Request<UpdateQuotaPolicyRequest>,
    ) -> Answer<UpdateQuotaPolicyResponse> {
        let author = may(&self.access, &request, Action::WriteQuotas).await?;
        let id = messages::id("id", &request.get_ref().id)?;
        let draft = messages::changed_draft(request.into_inner());
        let policy = self.quotas.policies.amend(&id, &draft, &author).await.map_err(call_error)?;
        Ok(Response::new(UpdateQuotaPolicyResponse { policy: Some((&policy).into()) }))
    }

    async fn delete_quota_policy(
        &self,
        request: Request<DeleteQuotaPolicyRequest>,
    ) -> Answer<DeleteQuotaPolicyResponse> {
        let author = may(&self.access, &request, Action::DeleteQuotas).await?;
        let id = messages::id("id", &request.get_ref().id)?;
        self.quotas.policies.delete(&id, &author).await.map_err(call_error)?;
        Ok(Response::new(DeleteQuotaPolicyResponse { id: id.to_string(), deleted: true }))
    }

    async fn get_quota_usage(
        &self,
        request: Request<GetQuotaUsageRequest>,
    ) -> Answer<GetQuotaUsageResponse> {
        may(&self.access, &request, Action::ReadQuotas).await?;
        let id = messages::id("quota_id", &request.get_ref().quota_id)?;
        let usage = self.quotas.usage(&id).await.map_err(call_error)?;
        Ok(Response::new(GetQuotaUsageResponse { usage: Some((&usage).into()) }))
    }

    async fn increment_quota_usage(
        &self,
        request: Request<IncrementQuotaUsageRequest>,
    ) -> Answer<IncrementQuotaUsageResponse> {
        may(&self.access, &request, Action::UseQuotas).await?;
        let wire = request.get_ref();
        let id = messages::id("quota_id", &wire.quota_id)?;
        let done = self.quotas.increment(&id, wire.amount, wire.request_id.as_deref()).await;
        Ok(Response::new((&done.map_err(call_error)?).into()))
    }

    async fn check_quota(&self, request: Request<CheckQuotaRequest>) -> Answer<CheckQuotaResponse> {
        may(&self.access, &request, Action::UseQuotas).await?;
        let wire = request.get_ref();
        let id = messages::id("quota_id", &wire.quota_id)?;
        let amount = Some(wire.amount).filter(|amount| *amount > 0);
        let checked = self.quotas.check(&id, amount).await.map_err(call_error)?;
        let usage = Some((&checked.usage).into());
        Ok(Response::new(CheckQuotaResponse { allowed: checked.allowed, usage }))
    }

    async fn reset_quota_usage(
        &self,
        request: Request<ResetQuotaUsageRequest>,
    ) -> Answer<ResetQuotaUsageResponse> {
        let author = may(&self.access, &request, Action::ResetQuotas).await?;
        let wire = request.get_ref();
        let id = messages::id("quota_id", &wire.quota_id)?;
        let done = self.quotas.reset(&id, &wire.reason, author).await.map_err(call_error)?;
        Ok(Response::new(ResetQuotaUsageResponse {
            quota_id: done.quota_id.to_string(),
            used: 0,
            reset_at: Some(time(done.reset_at)),
            reset_by: done.reset_by,
        }))
    }

    async fn get_quota_history(
        &self,
        request: Request<GetQuotaHistoryRequest>,
    ) -> Answer<GetQuotaHistoryResponse> {
        may(&self.access, &request, Action::ReadQuotas).await?;
        let wire = request.get_ref();
        let id = messages::id("quota_id", &wire.quota_id)?;
        let page = messages::page(wire.page, wire.page_size).map_err(CallError::Invalid)?;
        let listed = self.quotas.history(&id, page).await.map_err(call_error)?;
        Ok(Response::new(messages::history(&id, &listed)))
    }

    async fn refund_quota_usage(
        &self,
        request: Request<RefundQuotaUsageRequest>,
    ) -> Answer<RefundQuotaUsageResponse> {
        may(&self.access, &request, Action::UseQuotas).await?;
        let wire = request.get_ref();
        let id = messages::id("quota_id", &wire.quota_id)?;
        let done = self.quotas.refund(&id, &wire.request_id).await.map_err(call_error)?;
        Ok(Response::new(RefundQuotaUsageResponse {
            refunded: done.refunded,
            replayed: done.replayed,
            usage: Some((&done.usage).into()),
        }))
    }

    async fn reserve_quota(
        &self,
        request: Request<ReserveQuotaRequest>,
    ) -> Answer<ReserveQuotaResponse> {
        may(&self.access, &request, Action::UseQuotas).await?;
        let wire = request.get_ref();
        let id = messages::id("quota_id", &wire.quota_id)?;
        let wanted = reservations::request(wire);
        let done = self.quotas.reservations().reserve(&id, wanted).await.map_err(call_error)?;
        Ok(Response::new((&done).into()))
    }

    async fn use_quota_reservation(
        &self,
        request: Request<UseQuotaReservationRequest>,
    ) -> Answer<UseQuotaReservationResponse> {
        may(&self.access, &request, Action::UseQuotas).await?;
        Ok(Response::new(reservations::spend(&self.quotas, request.get_ref()).await?))
    }

    async fn settle_quota_reservation(
        &self,
        request: Request<SettleQuotaReservationRequest>,
    ) -> Answer<SettleQuotaReservationResponse> {
        may(&self.access, &request, Action::UseQuotas).await?;
        let wire = request.get_ref();
        let (id, one) = reservations::ids(&wire.quota_id, &wire.reservation_id)?;
        let wanted = SettledFor { amount: wire.amount, overdraft: wire.overdraft };
        let done = self.quotas.reservations().settle(&id, &one, wanted).await;
        Ok(Response::new((&done.map_err(call_error)?).into()))
    }

    async fn cancel_quota_reservation(
        &self,
        request: Request<CancelQuotaReservationRequest>,
    ) -> Answer<CancelQuotaReservationResponse> {
        may(&self.access, &request, Action::UseQuotas).await?;
        let wire = request.get_ref();
        let (id, one) = reservations::ids(&wire.quota_id, &wire.reservation_id)?;
        let done = self.quotas.reservations().cancel(&id, &one).await.map_err(call_error)?;
        Ok(Response::new((&done).into()))
    }

    async fn get_quota_reservation(
        &self,
        request: Request<GetQuotaReservationRequest>,
    ) -> Answer<GetQuotaReservationResponse> {
        may(&self.access, &request, Action::ReadQuotas).await?;
        let wire = request.get_ref();
        let (id, one) = reservations::ids(&wire.quota_id, &wire.reservation_id)?;
        let found = self.quotas.reservations().get(&id, &one).await.map_err(call_error)?;
        let reservation = Some(reservations::message(&id, &found));
        Ok(Response::new(GetQuotaReservationResponse { reservation }))
    }

    type MeterQuotaReservationStream = Metered<UseQuotaReservationResponse>;

    async fn meter_quota_reservation(
        &self,
        request: Request<Streaming<UseQuotaReservationRequest>>,
    ) -> Answer<Self::MeterQuotaReservationStream> {
        may(&self.access, &request, Action::UseQuotas).await?;
        let quotas = Arc::clone(&self.quotas);
        let caller = Arc::new(StreamCaller::new(&self.access, &request));
        Ok(Response::new(metered(request.into_inner(), Namespace::Quota, move |wire| {
            let (quotas, caller) = (Arc::clone(&quotas), Arc::clone(&caller));
            async move {
                caller.may(Action::UseQuotas).await?;
                reservations::spend(&quotas, &wire).await
            }
        })))
    }
}
