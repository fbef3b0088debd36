//! What a call costs: by hands in this process, and by hands in a confined one.
//!
//! The confined ones are the program's own: `cargo bench --bench hands` builds it. What they cost more
//! is printed last, with what it may be.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it found")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use undertext::exchange::Status;
use undertext::hands::{Hands, Order, Workspace};
use undertext::id::{CallId, EntryId};

fn order(tool: &str, arguments: &Value) -> Order {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    Order {
        call: CallId::new(EntryId(41), NEXT.fetch_add(1, Ordering::Relaxed)),
        tool: tool.to_owned(),
        arguments: arguments.to_string(),
        cwd: None,
        known: None,
        chars: 40_000,
        timeout_ms: None,
    }
}

/// Hands of both kinds; only the first where there is no sandbox.
#[cfg(target_os = "linux")]
async fn both(workspace: Workspace, place: &std::path::Path) -> Vec<(&'static str, Hands)> {
    use undertext::hands::Launch;
    use undertext::sandbox::{Bounds, Home};
    use undertext::setup::{Reach, Sandbox};

    let sandbox = Sandbox::Workspace(Reach::default());
    let root = workspace.root().to_owned();
    let bounds = Bounds::of(&sandbox, &[root], &Home::default());
    let launch = Launch {
        program: env!("CARGO_BIN_EXE_undertext").into(),
        arguments: vec!["hands".into()],
        temporary: place.to_owned(),
        upstream: None,
    };
    let mut all = vec![("in process", Hands::in_process(workspace.clone()))];
    if let Some(bounds) = bounds {
        let confined = Hands::confined(workspace, Vec::new(), bounds, launch).await;
        // Where they cannot be had, the others stand alone.
        all.extend(confined.ok().map(|(hands, _)| ("confined", hands)));
    }
    all
}

#[cfg(not(target_os = "linux"))]
async fn both(workspace: Workspace, _: &std::path::Path) -> Vec<(&'static str, Hands)> {
    vec![("in process", Hands::in_process(workspace))]
}

/// Of how many calls the middle one is told.
const CALLS: usize = 301;

/// How long calls take that are made by each of these hands in turn: the middle of each.
#[expect(clippy::disallowed_methods, reason = "time is what is measured")]
fn middle(
    runtime: &Runtime,
    hands: &[(&'static str, Hands)],
    (tool, arguments): (&str, &Value),
) -> Vec<Duration> {
    let mut taken = vec![Vec::new(); hands.len()];
    for _ in 0..CALLS {
        for ((_, hands), taken) in hands.iter().zip(&mut taken) {
            let begun = Instant::now();
            let outcome = runtime.block_on(hands.run(order(tool, arguments)));
            taken.push(begun.elapsed());
            assert_eq!(outcome.status, Status::Ok);
        }
    }
    let middle = taken.into_iter().map(|mut taken| {
        taken.sort();
        taken.get(CALLS / 2).copied().unwrap_or_default()
    });
    middle.collect()
}

fn calls(criterion: &mut Criterion) {
    let (Ok(place), Ok(runtime)) = (tempfile::tempdir(), Runtime::new()) else {
        return;
    };
    let made = std::fs::create_dir(place.path().join("w"))
        .and_then(|()| std::fs::write(place.path().join("w/a.txt"), "hello\n"));
    let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let workspace = Workspace::open(&place.path().join("w"), None, environment);
    let (Ok(()), Ok(workspace)) = (made, workspace) else {
        return;
    };
    let hands = runtime.block_on(both(workspace, place.path()));
    let mut lines = Vec::new();
    for (tool, arguments, bar) in [
        ("Read", json!({"path": "a.txt"}), Duration::from_micros(200)),
        (
            "Bash",
            json!({"command": "true"}),
            Duration::from_micros(500),
        ),
    ] {
        for (kind, hands) in &hands {
            criterion.bench_function(&format!("{tool}, {kind}"), |bencher| {
                bencher.iter(|| {
                    let outcome = runtime.block_on(hands.run(order(tool, &arguments)));
                    assert_eq!(outcome.status, Status::Ok);
                });
            });
        }
        if let [within, confined] = middle(&runtime, &hands, (tool, &arguments))[..] {
            let more = confined.saturating_sub(within);
            let verdict = if more <= bar { "within" } else { "ABOVE" };
            lines.push(format!(
                "{tool}: {within:?} in process, {confined:?} confined: {more:?} more, {verdict} {bar:?}"
            ));
        }
    }
    for (_, hands) in hands {
        runtime.block_on(hands.close());
    }
    for line in lines {
        println!("{line}");
    }
}

criterion_group!(hands, calls);
criterion_main!(hands);
