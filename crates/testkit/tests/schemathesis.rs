//! Schemathesis passes a conforming API, reports another, and ends in time.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    process::Command,
    thread,
    time::Duration,
};

use headgate_testkit::{Schemathesis, require};

/// Set for a test that runs in a process of its own.
const CHILD: &str = "HEADGATE_TESTKIT_CHILD";

/// One operation without parameters, which returns `{"up": true}`.
const OPENAPI: &str = r#"{
    "openapi": "3.1.0",
    "info": {"title": "Up", "version": "1"},
    "paths": {"/up": {"get": {"responses": {"200": {
        "description": "Whether it is up",
        "content": {"application/json": {"schema": {
            "type": "object", "required": ["up"], "properties": {"up": {"type": "boolean"}}
        }}}
    }}}}}
}"#;

/// Serves the document and this response to `/up` until the process ends. Returns the URL of the
/// document.
fn serve(up: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream, up));
        }
    });
    format!("http://{address}/openapi.json")
}

/// Sends one response per connection.
fn answer(mut stream: TcpStream, up: &str) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines().map_while(Result::ok);
    let request = lines.next()?;
    // Unread bytes would reset the connection.
    let headers: Vec<_> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    assert!(!headers.is_empty());
    let (status, body) = match request.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET", "/openapi.json"] => ("200 OK", OPENAPI),
        ["GET", path] if path.split('?').next() == Some("/up") => ("200 OK", up),
        _ => ("405 Method Not Allowed\r\nallow: GET", "{}"),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len(),
    )
    .ok()
}

#[test]
fn a_conforming_api_passes() {
    let schemathesis = require!(Schemathesis::find());
    let outcome = schemathesis.run(&serve(r#"{"up": true}"#), &["--max-examples", "5"]);
    assert_eq!(outcome, Ok(()));
}

#[test]
fn a_nonconforming_api_is_reported() {
    let schemathesis = require!(Schemathesis::find());
    let report = schemathesis.run(&serve(r#"{"up": "perhaps"}"#), &["--max-examples", "5"]);
    let report = report.unwrap_err();
    assert!(report.contains("Response violates schema"), "{report}");
}

#[test]
fn a_stuck_run_is_ended() {
    let schemathesis = require!(Schemathesis::find()).time_limit(Duration::from_millis(500));
    // The kernel accepts connections, but there is no response.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/openapi.json", silent.local_addr().unwrap());
    let report = schemathesis.run(&url, &[]).unwrap_err();
    assert!(report.starts_with("schemathesis did not end within 500ms"), "{report}");
}

#[test]
fn the_program_is_found_in_the_cache_or_path_or_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let installed = folder.path().join("headgate/tools/schemathesis/bin");
    let on_path = folder.path().join("bin");
    let found = || {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", "child_finds_it", "--nocapture"]).env(CHILD, "1");
        child.env("XDG_CACHE_HOME", folder.path()).env("PATH", &on_path);
        String::from_utf8(child.output().unwrap().stdout).unwrap()
    };
    assert!(found().contains("schemathesis: not on PATH"), "{}", found());
    for bin in [&on_path, &installed] {
        fs::create_dir_all(bin).unwrap();
        fs::write(bin.join("schemathesis"), "").unwrap();
        let program = format!("{:?}", bin.join("schemathesis"));
        assert!(found().contains(&program), "{}", found());
    }
}

/// The other half of `the_program_is_found_in_the_cache_or_path_or_skipped`.
#[test]
fn child_finds_it() {
    if env::var_os(CHILD).is_some() {
        println!("{:?}", Schemathesis::find().map_err(|skip| skip.to_string()));
    }
}
