//! Processes that are started before it is known what they are to do.

use std::fs;
use std::time::Duration;

use rustix::process::Pid;

use undertext::exchange::Status;
use undertext::hands::Hands;
use undertext::setup::Sandbox;

use super::{Area, By, bash, ends, had, ways};

/// Those of this process.
fn begun() -> Vec<Pid> {
    let mut those = ends::those("ahead");
    let own = std::process::id().to_string();
    those.retain(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Its state and its parent stand behind the name.
        let parent = stat.rsplit(") ").next().and_then(|it| it.split(' ').nth(1));
        parent == Some(&own)
    });
    those
}

/// Waits until there is one, or none any more.
async fn comes_to(count: usize) {
    for _ in 0..1000 {
        if begun().len() == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("not {count}, but {:?}", begun());
}

/// The one that was started is the one that serves, within the same bounds as any other; one that nobody
/// needs ends.
#[tokio::test]
async fn one_that_began_ahead_is_held_as_any_other_and_ends_if_none_is_needed() {
    for by in [By::Nothing, By::Namespaces, By::Landlock] {
        let area = Area::new();
        let ahead = area.launch().ahead();
        comes_to(1).await;
        let first = begun();
        let hands = if by == By::Nothing {
            let hands = Hands::free(area.workspace(), Vec::new(), ahead).await;
            hands.unwrap()
        } else {
            let bounds = area.bounds(&Sandbox::Workspace(area.reach())).by(ways(by));
            let started = Hands::confined(area.workspace(), Vec::new(), bounds, ahead).await;
            let Some((hands, _)) = had(by, started) else {
                continue;
            };
            hands
        };
        let outcome = bash(&hands, "cat a.txt; cat ../home/.ssh/id").await;
        let expected = match by {
            By::Nothing => Status::Ok,
            By::Namespaces | By::Landlock => Status::Error,
        };
        assert_eq!(outcome.status, expected, "{by:?}: {}", outcome.content);
        assert!(outcome.content.contains("hello"), "{by:?}: {outcome:?}");
        assert_eq!(begun(), first, "{by:?}");
        hands.close().await;
        assert_eq!(begun(), [], "{by:?}");
    }
    let ahead = Area::new().launch().ahead();
    comes_to(1).await;
    drop(ahead);
    comes_to(0).await;
}
