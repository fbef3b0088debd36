//! What the user replaces beside a run while a command of it runs.

use std::fs;

use undertext::exchange::Status;

use super::{Area, By, bash, read};

/// What runs while something protected is replaced is ended, and the next call is as held as ever.
#[tokio::test]
async fn what_is_replaced_while_something_runs_ends_it() {
    let area = Area::new();
    for name in ["hooks", "objects", "refs"] {
        fs::create_dir_all(area.path("w/.git").join(name)).unwrap();
    }
    fs::write(area.path("w/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let config = area.path("w/.git/config");
    fs::write(&config, "[core]\n").unwrap();
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    let command = "touch started; setsid sleep 600 & sleep 600; echo evil >> .git/config";
    let mut runs = Box::pin(bash(&hands, command));
    let mut replaced = false;
    let outcome = loop {
        tokio::select! {
            outcome = &mut runs => break outcome,
            () = tokio::task::yield_now() => {}
        }
        if !replaced && area.path("w/started").exists() {
            let beside = area.path("w/.git/config.new");
            fs::write(&beside, "[user]\n").unwrap();
            fs::rename(beside, &config).unwrap();
            replaced = true;
        }
    };
    drop(runs);
    assert_eq!(outcome.status, Status::Error, "{outcome:?}");
    assert_eq!(
        outcome.content.lines().last().unwrap(),
        format!(
            "[{} was replaced or removed from outside the sandbox while this ran, which was to keep it \
             as it is: everything that ran was ended, and the next call runs in a new one; tell the user \
             to look at that file before anything uses it]",
            config.display()
        )
    );
    let outcome = bash(
        &hands,
        "cat a.txt; grep -sl sleep /proc/[0-9]*/comm; echo evil >> .git/config",
    )
    .await;
    assert!(outcome.content.starts_with("hello\n"), "{outcome:?}");
    assert!(!outcome.content.contains("/comm"), "{outcome:?}");
    assert!(outcome.content.contains("config: Read-only"), "{outcome:?}");
    assert_eq!(read(&config), "[user]\n");
    assert_eq!(hands.remarks(), [""; 0]);
    hands.close().await;
}
