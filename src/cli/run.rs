//! `run`: a task goes in, a model and its tools work until it is done.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use futures::{FutureExt as _, Stream, StreamExt as _};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, ByHandError, Progress, Task};
use undertext::compaction::by_hand::{self, Order};
use undertext::config;
use undertext::hands;
use undertext::id::{EntryId, RunId};
use undertext::record::runs;
use undertext::record::{Clock, OnDamage, RecordError, Recorder};
use undertext::transcript::{Event, Note, Reason, Run};
use undertext::view::View;

use crate::cli::confined::{self, Ahead};
use crate::cli::ending::{AT_ONCE, Ended, again, resume, tell};
use crate::cli::exit::{Exit, Failure};
use crate::cli::lock::{LockError, Sharing, WorkspaceLock};
use crate::cli::output::Told;
use crate::cli::outputs::Outputs;
use crate::cli::report::Report;
use crate::cli::start::{self, Start};
use crate::cli::term::{Look, Term};
use crate::cli::{Process, RunArgs, find, made, offline, planted, process, site, stop, told};

/// How long tools that still run may take to end when the program does.
pub(super) const LEAVING: Duration = Duration::from_secs(1);

/// Runs an agent until the model is done or something ends the run.
pub(crate) fn run(args: &RunArgs, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    // Its program takes as long to begin as all that is to be known before it can be told what to do.
    let ahead = confined::ahead(process);
    let start = Start::new(args, process, &mut io::stdin())?;
    term.hide(&start.known);
    planted::check_written(args, &start, process)?;
    args.logs.begin(process, term.masks())?;
    let runtime = process::one_thread()?;
    let exit = runtime.block_on(go(args, (start, ahead), process, term));
    runtime.shutdown_timeout(LEAVING);
    // Whatever did not end in time.
    hands::end_all();
    exit
}

/// Puts the agent together, lets it work, and tells how it ended.
async fn go(
    args: &RunArgs,
    (mut start, ahead): (Start, Ahead),
    process: &Process,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let outputs = Outputs::check(&args.outputs, process)?;
    let taken_up = taken_up(args, &start, process)?;
    let _served = offline::serve(args, &mut start, taken_up.as_ref()).await?;
    let workspace = match (&start.workspace, &taken_up) {
        (None, Some(recorder)) => start::workspace(Some(&began_in(recorder.view())), process)?,
        (named, _) => named.clone().unwrap_or_default(),
    };
    start.keep_readable(&workspace);
    term.spare(&workspace.to_string_lossy());
    let run = taken_up.as_ref().map(Recorder::run);
    let run = run.unwrap_or_else(|| Clock::System.new_run());
    let before = taken_up.as_ref().and_then(|it| it.view().setup());
    let beside = || {
        term.masks().prepare(&start.remarks.join("\n"));
        made::client(&start)
    };
    // Before its hands are made: they may leave marks in the workspace.
    let mut unlocked = Vec::new();
    let mut lock = lock(args, &workspace, process, &mut unlocked)?;
    let by = (ahead, beside, process);
    let (agent, mut remarks) = made::agent(args, &start, (&workspace, run), before, by).await?;
    remarks.extend(unlocked);
    let by = (&agent, lock.as_mut());
    let site = (workspace.as_path(), run, taken_up);
    let done = with(by, args, &start, site, (outputs, remarks), (process, term));
    let done = Box::pin(done).await;
    // Whatever came of it.
    agent.close().await;
    drop(lock);
    let Done {
        ended,
        recorder,
        again,
        written,
        mut report,
    } = done?;
    let exit = tell(ended, &recorder, &again, &start, &mut report)?;
    written.map(|()| exit)
}

/// What came of the work.
struct Done<'a> {
    ended: (Ended, Option<Exit>),
    recorder: Recorder,
    /// How to go on.
    again: String,
    /// Whether what was to be written is.
    written: Result<(), Failure>,
    report: Report<'a>,
}

/// Lets an agent work on a run, new or taken up, and writes what came of it.
async fn with<'a>(
    (agent, lock): (&Agent, Option<&mut WorkspaceLock>),
    args: &RunArgs,
    start: &Start,
    (workspace, run, taken_up): (&Path, RunId, Option<Recorder>),
    (outputs, mut remarks): (Outputs, Vec<String>),
    (process, term): (&Process, &'a mut Term),
) -> Result<Done<'a>, Failure> {
    let root = told::wanted(&start.settings, false, workspace, process).root;
    let mut ours = vec![process.here(&start.transcripts)];
    ours.extend(config::state_dir(&process.environment));
    ours.extend(args.logs.path(process));
    ours.extend(site::named(args, process));
    let outputs = match agent.hands() {
        Some(hands) => outputs.keep(hands, &root, ours).await?,
        None => outputs,
    };
    let (mut recorder, first) = match taken_up {
        Some(recorder) => {
            let before = began_in(recorder.view());
            if before.as_os_str().is_empty() {
                remarks.push("nothing says in which workspace the run began".to_owned());
            } else if before != workspace {
                remarks.push(format!(
                    "the run began in another workspace, {}",
                    before.display()
                ));
            }
            let first = told_from(recorder.view());
            (recorder, first)
        }
        None => (create(start, first(args, run, workspace))?, EntryId::FIRST),
    };
    recorder.keep_out(start.known.clone());
    if let Some(lock) = lock {
        lock.name(recorder.run());
    }
    let outputs = outputs.behind(recorder.view());

    let mut report = Report::new(term, args.json, args.logs.verbose == 0, &recorder);
    report.keep_quiet(args.logs.quiet);
    report.expect_task(start.task.as_deref());
    let (run, location) = (recorder.run(), recorder.storage().location());
    report.say(Look::Strong, &format!("run {}: {location}", run.short()));
    for remark in start.remarks.iter().chain(&remarks) {
        report.say(Look::Faint, remark);
    }
    let begins = report.object(&Told::Start {
        run,
        transcript: location,
    });
    begins.map_err(unread)?;
    for entry in recorder.view().transcript().from(first) {
        report.entry(entry)?;
    }

    let task = start.task.clone().map(|text| Task {
        text,
        attachments: start.attachments.clone(),
    });
    let again = again(args, start, &recorder);
    let order = compaction(start, &recorder, &mut report)?;
    let ended = work(agent, &mut recorder, (order, task), &again, &mut report).await?;
    let written = match (&ended, agent.hands()) {
        // Whoever asked twice waits for nothing.
        ((Ended::AtOnce, _), _) | (_, None) => outputs.last_message(recorder.view(), &mut report),
        ((Ended::Returned(_) | Ended::Unread, _), Some(hands)) => {
            outputs.write(hands, recorder.view(), &mut report).await
        }
    };
    Ok(Done {
        ended,
        recorder,
        again,
        written,
        report,
    })
}

/// The failure to say that a run begins. What nobody reads is not done either, and is not done well.
fn unread(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        let text = "nobody reads the output, so nothing was done";
        return Failure::new(Exit::Interrupted, anyhow::Error::msg(text));
    }
    error.into()
}

/// The run to take up again, if one is: read, locked, and with something left to do.
fn taken_up(args: &RunArgs, start: &Start, process: &Process) -> Result<Option<Recorder>, Failure> {
    let path = match (&args.resume, args.continue_last, &start.workspace) {
        (Some(run), _, _) => find::path(run, &start.transcripts, process)?,
        (None, true, Some(workspace)) => find::newest(&start.transcripts, workspace, process)?,
        (None, _, _) => return Ok(None),
    };
    let recorder = opened(&path, args, start, process)?;
    let view = recorder.view();
    let finished = view.ledger().ended == Some(Reason::Finished);
    if start.task.is_none() && (finished || view.working().task.is_none()) {
        let run = recorder.run().short();
        let what = if finished {
            "is finished"
        } else {
            "has no task yet"
        };
        return Err(Failure::usage(format!(
            "run {run} {what}; say what is next: {} \"TASK\"",
            resume(args, start, &recorder)
        )));
    }
    Ok(Some(recorder))
}

/// The run at this path, to be gone on with.
pub(super) fn opened(
    path: &Path,
    args: &RunArgs,
    start: &Start,
    process: &Process,
) -> Result<Recorder, Failure> {
    let storage = site::opened(path, &start.settings, &start.transcripts, process)?;
    let on_damage = if args.accept_damage {
        OnDamage::Accept
    } else {
        OnDamage::Refuse
    };
    let recorder = Recorder::open(Box::new(storage), Clock::System, on_damage);
    recorder.map_err(|error| {
        let is_damaged = matches!(error, RecordError::Damaged { .. });
        let failure = Failure::from(error);
        if !is_damaged {
            return failure;
        }
        let begins = runs::read(path).is_ok_and(|loaded| loaded.run().is_some());
        failure.advised(if begins {
            "`undertext run --resume RUN --accept-damage` goes on with what is left"
        } else {
            "without its first entry it cannot be taken up; `undertext print` shows what is left"
        })
    })
}

/// What is compacted before the run goes on, if anything is; says why not, if nothing is worth it.
fn compaction(
    start: &Start,
    recorder: &Recorder,
    report: &mut Report<'_>,
) -> Result<Option<Order>, Failure> {
    let Some(order) = &start.order else {
        return Ok(None);
    };
    let refused = |error: by_hand::Refused| Failure::new(Exit::Usage, error);
    let resolved = order.resolve(recorder.view(), recorder.now());
    let plan = by_hand::plan(recorder.view(), &resolved.map_err(refused)?, None);
    match plan.map_err(refused)?.report().nothing {
        Some(nothing) => {
            report.say(Look::Faint, &nothing);
            Ok(None)
        }
        None => Ok(Some(order.clone())),
    }
}

/// The lock on the workspace. Where locks cannot be had, the run goes on without one and says so.
pub(super) fn lock(
    args: &RunArgs,
    workspace: &Path,
    process: &Process,
    remarks: &mut Vec<String>,
) -> Result<Option<WorkspaceLock>, Failure> {
    let sharing = if args.share_workspace {
        Sharing::Shared
    } else {
        Sharing::Alone
    };
    let unlocked = "the workspace is not locked against other runs";
    let Some(state) = config::state_dir(&process.environment) else {
        remarks.push(format!(
            "{unlocked}: neither XDG_STATE_HOME nor HOME is set"
        ));
        return Ok(None);
    };
    let locks = state.join("locks");
    match WorkspaceLock::take(workspace, &locks, sharing) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Unusable(error)) => {
            remarks.push(format!("{unlocked}: {}: {error}", locks.display()));
            Ok(None)
        }
        Err(error @ LockError::InUse(_)) => Err(Failure::new(Exit::Usage, error)),
    }
}

/// The workspace in which a run began.
pub(super) fn began_in(view: &View) -> PathBuf {
    let first = view.transcript().entries().first();
    match first.map(|entry| &entry.event) {
        Some(Event::Run(run)) => PathBuf::from(&run.workspace),
        Some(_) | None => PathBuf::new(),
    }
}

/// From which entry on a run that was taken up is told: the notes that were recorded when it was. Of what
/// stands before them at most one entry is read.
fn told_from(view: &View) -> EntryId {
    let is_opening =
        |event: &Event| matches!(event, Event::Note(Note::Torn(_) | Note::Damage { .. }));
    let entries = view.transcript().entries().iter().rev();
    let notes = entries.take_while(|entry| is_opening(&entry.event));
    let first = notes.last().map(|entry| entry.id);
    first.unwrap_or_else(|| view.transcript().next_id())
}

/// The first entry of a run.
pub(super) fn first(args: &RunArgs, run: RunId, workspace: &Path) -> Run {
    Run {
        name: args.name.clone(),
        ..Run::new(run, workspace.to_string_lossy())
    }
}

/// Begins a transcript.
pub(super) fn create(start: &Start, first: Run) -> Result<Recorder, Failure> {
    let hidden = |text: String| start.known.replace(&text).into_owned();
    let first = Run {
        name: first.name.map(hidden),
        ..first
    };
    let transcripts = &start.settings.transcripts;
    let storage = transcripts.create(&start.transcripts, first.run)?;
    Ok(Recorder::create(Box::new(storage), Clock::System, first)?)
}

/// Lets the agent work; the first signal ends it orderly, the second at once.
async fn work(
    agent: &Agent,
    recorder: &mut Recorder,
    (order, task): (Option<Order>, Option<Task>),
    again: &str,
    report: &mut Report<'_>,
) -> Result<(Ended, Option<Exit>), Failure> {
    let cancel = CancellationToken::new();
    let last_words = format!("{AT_ONCE}\n{again}");
    let mut signals = stop::watch(&last_words, report.masks())?;
    let mut signal = None;
    let mut unread = false;
    let mut events = agent.events();
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let returned = {
        let mut run = pin!(async {
            if let Some(order) = &order {
                let compacted = agent.compact_by_hand(recorder, order, &cancel).await;
                // Notes say why a summary could not be had; a run does not end because of that.
                if let Err(ByHandError::Record(error)) = compacted {
                    return Err(error);
                }
            }
            agent.run(recorder, task, &cancel).await
        });
        loop {
            tokio::select! {
                biased;
                Some(exit) = signals.recv() => {
                    if signal.replace(exit).is_some() {
                        return Ok((Ended::AtOnce, Some(Exit::Interrupted)));
                    }
                    cancel.cancel();
                    report.say(Look::Plain, "ending the run; once more ends it at once");
                }
                Some(progress) = events.next() => {
                    if !unread && report.take(&progress).is_err() {
                        unread = true;
                        cancel.cancel();
                    }
                }
                _ = tick.tick(), if report.is_live() => report.tick(),
                returned = &mut run => break returned,
            }
        }
    };
    if unread {
        return Ok((Ended::Unread, signal));
    }
    rest(&mut events, report)?;
    Ok((Ended::Returned(returned), signal))
}

/// Shows what was recorded last.
fn rest(
    events: &mut (impl Stream<Item = Progress> + Unpin),
    report: &mut Report<'_>,
) -> io::Result<()> {
    while let Some(Some(progress)) = events.next().now_or_never() {
        report.take(&progress)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use undertext::record::{Durability, FileStorage};

    use super::*;

    #[test]
    fn what_was_told_before_is_not_read_to_go_on() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("run.jsonl");
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");
        std::fs::copy(golden, &path).unwrap();
        let open = || {
            let storage = FileStorage::open(&path, Durability::None).unwrap();
            Recorder::open(Box::new(storage), Clock::System, OnDamage::Refuse).unwrap()
        };
        let told = |recorder: &Recorder| {
            let transcript = recorder.view().transcript();
            assert!(transcript.held() < transcript.entries().len());
            let before = transcript.fetched();
            let told = transcript.from(told_from(recorder.view())).to_vec();
            assert_eq!(transcript.fetched(), before);
            told
        };
        assert!(told(&open()).is_empty());
        // What stands behind the last line end is noted when it is taken up.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(b"{\"id\":");
        std::fs::write(&path, &bytes).unwrap();
        let told = told(&open());
        assert!(
            matches!(&told[..], [note] if matches!(note.event, Event::Note(Note::Torn(_)))),
            "{told:?}"
        );
    }
}
