//! `headgate reserve`, `reservation`, `use`, `settle`, `cancel` and `refund`

use crate::harness::{Server, failure, printed, stdout};

fn fields(printed: &str) -> Vec<(&str, &str)> {
    printed
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(a, b)| (a.trim(), b.trim()))
        .collect()
}

fn field<'a>(fields: &[(&'a str, &'a str)], name: &str) -> &'a str {
    fields.iter().find(|(it, _)| *it == name).map_or("", |(_, value)| value)
}

/// A limit of 10 in a window that does not end.
fn server() -> Server {
    let server = Server::start(&[]);
    let rule = ["rules", "create", "--scope", "user", "--pattern", "*", "--limit", "10"];
    let more = ["--window", "8640000s", "--algorithm", "fixed_window"];
    printed(&server.run(&[&rule[..], &more[..]].concat()));
    server
}

#[test]
fn units_are_reserved_used_settled_and_cancelled() {
    let server = server();
    // So long that it does not end before it is settled.
    let reserve = ["reserve", "user", "u1", "--cost", "6", "--ttl", "3600", "--request-id", "a"];
    let made = server.json(&reserve);
    let id = made["id"].as_str().unwrap();
    assert_eq!(server.json(&reserve)["id"], id, "the same reservation");
    let denied = server.run(&["reserve", "user", "u2", "--and", "user:u1=5"]);
    assert_eq!(denied.status.code(), Some(2), "{denied:?}");
    let denied = fields(stdout(&denied));
    assert_eq!((field(&denied, "allowed"), field(&denied, "remaining")), ("no", "10, 4"));
    assert!(field(&denied, "reason").starts_with("rate limit exceeded"), "{denied:?}");

    let used = server.run(&["use", id, "--cost", "2"]);
    let used = fields(printed(&used));
    assert_eq!((field(&used, "held"), field(&used, "stop")), ("4", "no"));
    for (total, held) in [("3", "3"), ("3", "3"), ("2", "3")] {
        let used = server.run(&["use", id, "--total", total]);
        assert_eq!(field(&fields(printed(&used)), "held"), held, "{total}");
    }
    let both = server.run(&["use", id, "--total", "3", "--cost", "1"]);
    assert!(failure(&both).contains("cannot be used with"), "{both:?}");
    let shown = server.run(&["reservation", id]);
    let shown = fields(printed(&shown));
    assert_eq!((field(&shown, "status"), field(&shown, "held")), ("pending", "3"));
    let settled = server.run(&["settle", id, "--cost", "5"]);
    let settled = fields(printed(&settled));
    let units = ["settled", "returned", "owed", "remaining"].map(|name| field(&settled, name));
    assert_eq!(units, ["5", "1", "0", "5"]);
    let another = server.run(&["settle", id, "--cost", "4"]);
    assert!(failure(&another).contains("was settled for 5"), "{another:?}");

    let several = ["reserve", "user", "u1", "--cost", "5", "--and", "user:u2=3", "--ttl", "3600"];
    let several = server.json(&several);
    let several = several["id"].as_str().unwrap();
    let stopped = server.run(&["use", several, "--cost", "5,1"]);
    assert_eq!(stopped.status.code(), Some(2), "nothing is left of u1: {stopped:?}");
    assert_eq!(server.json(&["cancel", several])["status"], "cancelled");
    let ended = server.run(&["cancel", several]);
    assert!(failure(&ended).contains("reserve again"), "{ended:?}");
    let unknown = server.run(&["settle", "rres_x", "--cost", "1"]);
    assert!(failure(&unknown).contains("reservation not found"), "{unknown:?}");
}

#[test]
fn a_check_is_refunded_by_its_request_id() {
    let server = server();
    let of_check = ["user", "u1", "--cost", "4", "--request-id", "a"];
    let check = [&["check"], &of_check[..]].concat();
    printed(&server.run(&check));
    let again = server.run(&check);
    assert!(failure(&again).contains("request_id a was used"), "{again:?}");
    let refund = [&["refund"], &of_check[..]].concat();
    let refunded = server.run(&refund);
    let refunded = fields(printed(&refunded));
    assert_eq!((field(&refunded, "cost"), field(&refunded, "remaining")), ("4", "10"));
    let other = server.run(&["refund", "user", "u1", "--cost", "3", "--request-id", "a"]);
    assert!(failure(&other).contains("nothing was refunded"), "{other:?}");
}
