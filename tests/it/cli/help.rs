//! What a newcomer reads first.

use crate::cli::{Place, ended};

const COMMANDS: [&[&str]; 29] = [
    &[],
    &["run"],
    &["batch"],
    &["demo"],
    &["list"],
    &["show"],
    &["print"],
    &["replay"],
    &["why"],
    &["page"],
    &["compact"],
    &["retract"],
    &["expand"],
    &["pin"],
    &["unpin"],
    &["fork"],
    &["lab"],
    &["import"],
    &["export"],
    &["config"],
    &["config", "init"],
    &["config", "path"],
    &["config", "check"],
    &["config", "show"],
    &["config", "schema"],
    &["completions"],
    &["doctor"],
    &["tools"],
    &["rm"],
];

#[test]
fn there_is_one_help_and_it_fits_a_terminal() {
    let place = Place::new();
    for command in COMMANDS {
        let long = place.run(&[command, &["--help"]].concat());
        let short = place.run(&[command, &["-h"]].concat());
        assert_eq!((long.code, &long.out), (0, &short.out), "{command:?}");
        let mut narrow = place.command(&[command, &["--help"]].concat());
        let narrow = ended(narrow.env("COLUMNS", "80").spawn().unwrap());
        for (help, most) in [(long.out, 100), (narrow.out, 80)] {
            let widest = help.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(most), "{command:?}: {widest:?}");
        }
    }
}

#[test]
fn flags_of_run_stand_in_groups_from_the_task_to_the_settings() {
    let place = Place::new();
    let mut groups = String::new();
    for line in place.run(&["run", "--help"]).out.lines() {
        if line.ends_with(':') && !line.starts_with(' ') {
            groups += "\n";
            groups += line;
        }
        if line.starts_with("  -") || line.starts_with("      --") {
            let names = line
                .split_whitespace()
                .take_while(|word| word.starts_with('-'));
            groups += " ";
            groups += names.last().unwrap();
        }
    }
    insta::assert_snapshot!(groups.trim(), @"
    Arguments:
    Options: --unmasked --help
    Task: --task-file --attach --check --resume --continue --compact[=<RULE>] --accept-damage --name
    Model: --model --base-url --api-key-env
    Workspace and tools: --workspace --tools --no-tools --instructions --append-instructions --env --sandbox --network=<HOST,…> --share-workspace
    Limits: --max-rounds --max-tokens --max-cost --max-time
    Output: --json --output-schema --output-last-message --diff --quiet --verbose... --log-file
    Settings: --transcripts --config --set
    Examples:
    ");
}
