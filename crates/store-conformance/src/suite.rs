//! The tests that every store calls. Each function panics if the store is wrong.

mod concurrency;
mod exactness;
mod long_logs;
mod places;
mod reservations;
mod streams;

pub use concurrency::never_admits_more_than_the_limit;
pub use exactness::{agrees_with_the_model, stands_still_when_its_clock_steps_back};
pub use long_logs::agrees_with_the_model_about_long_logs;
pub use places::{
    a_place_is_free_when_its_lease_ends, agrees_with_the_model_about_many_holders,
    lists_the_holders_of_a_subject, never_more_holders_than_places,
    thousands_of_holders_have_a_place_each,
};
pub use reservations::{
    a_limit_that_comes_with_a_reservation_raises_no_rate,
    a_refund_under_a_smaller_limit_returns_no_more,
    refuses_one_reservation_too_many_until_another_ends, remembers_the_latest_settlements,
};
pub use streams::streams_stop_at_the_limit;
