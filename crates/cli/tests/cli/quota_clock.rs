//! A server with a skewed clock: PostgreSQL's clock decides the period.

use headgate_testkit::{Postgres, require, skewed_clock};
use serde_json::Value;

use crate::{
    backup::until_ready,
    harness::{Server, http, printed},
};

/// Starts a server on `postgres` with more variables.
fn serve(postgres: &Postgres, more: &[(&str, String)]) -> Server {
    let url = postgres.url();
    let own = [("HEADGATE__AUTH__MODE", "off"), ("HEADGATE__DATABASE__URL", &*url)];
    let more = more.iter().map(|(name, value)| (*name, value.as_str()));
    Server::start_with_log(&own.into_iter().chain(more).collect::<Vec<_>>())
}

fn get(server: &Server, path: &str) -> String {
    let answer = http(server, &format!("GET {path}"), &[], "");
    answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
}

#[test]
fn a_server_26_hours_off_counts_in_the_databases_day() {
    let postgres = require!(Postgres::start());
    let right = serve(&postgres, &[]);
    until_ready(&right);
    // A time zone in which no day ends during the test.
    let hour: u32 =
        postgres.psql("SELECT extract(hour FROM now() AT TIME ZONE 'UTC')").parse().unwrap();
    let zone = if (6..18).contains(&hour) { "UTC" } else { "Asia/Tokyo" };
    for hours in [26_i64, -26] {
        let id = right.json(&[
            "quota",
            "create",
            "--name",
            "plan",
            "--subject-type",
            "tenant",
            "--subject-id",
            &hours.to_string().replace('-', "minus"),
            "--limit",
            "2",
            "--period",
            "daily",
            "--time-zone",
            zone,
        ])["id"]
            .as_str()
            .unwrap()
            .to_owned();
        printed(&right.run(&["quota", "increment", &id, "--amount", "2"]));
        let wrong = serve(&postgres, &require!(skewed_clock(hours * 3_600)));
        let usage = |server: &Server| -> Value {
            let text = get(server, &format!("/api/v1/quotas/{id}/usage"));
            serde_json::from_str(&text).unwrap()
        };
        let (expected, shown) = (usage(&right), usage(&wrong));
        assert_eq!(
            (&shown["used"], &shown["reset_at"]),
            (&expected["used"], &expected["reset_at"])
        );
        assert_eq!(shown["used"], 2);
        let refused = wrong.run(&["quota", "increment", &id, "--amount", "1"]);
        assert!(!refused.status.success(), "another day's quota: {refused:?}");

        let direction = if hours > 0 { "ahead of" } else { "behind" };
        let ready: Value = serde_json::from_str(&get(&wrong, "/readyz")).unwrap();
        assert_eq!(ready["status"], "degraded");
        let check = ready["checks"]["clock"].as_str().unwrap();
        assert!(check.contains(&format!(" s {direction} the database's")), "{check}");
        assert!(wrong.log().contains("clock skew"), "{}", wrong.log());
        let metrics = get(&wrong, "/metrics");
        let line =
            metrics.lines().find(|line| line.starts_with("headgate_quota_clock_skew_seconds"));
        let line = line.unwrap_or_else(|| panic!("{metrics}"));
        let skew: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert!((skew - hours as f64 * 3_600.0).abs() < 60.0, "{skew}");
    }
    let ready: Value = serde_json::from_str(&get(&right, "/readyz")).unwrap();
    assert_eq!((&ready["status"], &ready["checks"]["clock"]), (&"ready".into(), &Value::Null));
}
