#!/usr/bin/env bash
# Takes guards out, one at a time, and expects tests to fail for each: a guard that nothing misses is
# guarded by no test.
#   tests/guards.sh               all of them
#   tests/guards.sh lock torn     those whose names hold one of these words
#   tests/guards.sh --check       none: only whether each still stands in the source
# What takes a guard out may let a test wait for ever, so each has ten minutes.
# It works on a copy below target/, so the checkout stays as it is. Exit code 0: every guard is missed.
set -eu
cd "$(dirname "$0")/.."
checks=""
if [ "${1-}" = --check ]; then
    checks=yes
    shift
fi
wanted=("$@")
copy=target/guards/tree
log="$PWD/target/guards/log"
export CARGO_TARGET_DIR="$PWD/target/guards/build"
# Each guard is built anew, and nobody looks at what was built.
export CARGO_PROFILE_DEV_DEBUG=0
# What the checkout no longer has, the copy must not have.
if [ -z "$checks" ]; then
    rm -rf "$copy"
    mkdir -p "$copy"
    git ls-files -z --cached --others --exclude-standard | tar --null -T - -c | tar -x -C "$copy"
    cd "$copy"
fi
failed=0

# guard NAME FILE LINE INSTEAD TESTS...: in FILE, INSTEAD stands in the place of LINE, which is there
# once; TESTS, as cargo takes them, are red then.
guard() {
    local name="$1" file="$2" line="$3" instead="$4" text word chosen=""
    shift 4
    [ "${#wanted[@]}" -gt 0 ] || chosen=yes
    for word in "${wanted[@]}"; do
        case "$name" in *"$word"*) chosen=yes ;; esac
    done
    [ -n "$chosen" ] || return 0
    text="$(cat "$file")"
    local rest="${text#*"$line"}"
    if [ "$rest" = "$text" ] || [ "${rest#*"$line"}" != "$rest" ]; then
        printf 'STALE   %s: `%s` is not in %s once\n' "$name" "$line" "$file"
        failed=1
        return 0
    fi
    [ -z "$checks" ] || return 0
    printf '%s\n' "${text%%"$line"*}$instead$rest" >"$file"
    if ! cargo test --no-run "$@" >"$log" 2>&1; then
        printf 'BROKEN  %s: does not compile\n' "$name"
        tail -n 20 "$log"
        failed=1
    elif timeout 600 cargo test "$@" >"$log" 2>&1; then
        printf 'UNSEEN  %s: nothing is red in `cargo test %s`\n' "$name" "$*"
        failed=1
    else
        printf 'missed  %s: %s\n' "$name" "$(grep -c '^test .* FAILED$' "$log") red"
    fi
    printf '%s\n' "$text" >"$file"
}

# The transcript's file.
guard 'a stranger at the path is not written into' src/record/file.rs \
    'if !leads_to(&self.path, &found) {' 'if false {' --lib record::tests::files
guard 'a length that someone else changed' src/record/file.rs \
    'if found.len() != self.length {' 'if false {' --lib record::tests::files
guard 'a write is not continued' src/record/file.rs \
    'Ok(written) if written == bytes.len() => Ok(()),' 'Ok(_) => Ok(()),' --lib record::file
guard 'the lock' src/record/lock.rs \
    'taken(|| past_the_dead(file, File::try_lock))' \
    'taken(|| past_the_dead(file, File::try_lock).or(Ok(())))' --lib record::tests::files
guard 'a copy that a dead process left is waited for' src/record/lock.rs \
    'if !left.is_zero() && is_of_the_dead(file) => {' 'if !left.is_zero() && false => {' \
    --lib record::lock
guard 'nobody who lives is waited for' src/record/lock.rs \
    'if !left.is_zero() && is_of_the_dead(file) => {' 'if !left.is_zero() => {' --lib record::lock
guard 'the file is for nobody else' src/record/file.rs \
    'file.set_permissions(fs::Permissions::from_mode(0o600))?;' \
    'file.set_permissions(fs::Permissions::from_mode(0o644))?;' --lib record::tests::files
guard 'the directory is for nobody else' src/record/directory.rs \
    'fs::set_permissions(directory, Permissions::from_mode(0o700))' \
    'fs::set_permissions(directory, Permissions::from_mode(0o755))' --lib record::tests::files
guard 'only a plain file is opened' src/record/file.rs \
    'plain(&opened(fs::symlink_metadata(path))?)?;' '' --lib record::tests::files
guard 'a new run takes no other file' src/record/file.rs \
    '.create_new(true)' '.create(true)' --lib record::tests::files

# Blobs.
guard 'a link in place of a blob is not followed' src/record/blobs.rs \
    'let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();' \
    'let flags = OFlags::NONBLOCK.bits();' --lib record::blobs
guard 'a blob is what its name says' src/record/blobs.rs \
    'if Digest::of(&bytes) == digest {' 'if true {' --lib record::blobs
guard 'a blob is there before the entry' src/record/journal.rs \
    '|storage| storage.write_blob(digest, bytes),' \
    '|storage| { let _ = (storage, digest, bytes); Ok(()) },' --lib record::tests
guard 'a fork has no blob that is not what its name says' src/record/blobs.rs \
    'let (file, bytes) = match from.find(digest) {' \
    'let (file, bytes) = match File::open(&theirs).map(|file| Some((file, Vec::new()))) {' \
    --lib record::tests::forks

# What is durable was synced.
guard 'lines are synced' src/record/file.rs \
    'self.file.sync_data()?;' '' --lib record::tests::synced
guard 'the directories of a new transcript are synced' src/record/file.rs \
    $'self.file.sync_data()?;\n                self.sync_directories()' \
    $'self.file.sync_data()?;\n                Ok(())' --lib record::tests::synced
guard 'the directories above a blob are synced with it' src/record/file.rs \
    'Durability::Data => self.sync_directories(),' 'Durability::Data => Ok(()),' \
    --lib record::tests::synced
guard 'the name of a fork is synced' src/record/file.rs \
    'sync_directory(parent(&self.path))?;' '' --lib record::tests::synced
guard 'names are synced' src/record/directory.rs \
    'File::open(directory)?.sync_all()' 'File::open(directory).map(drop)' --lib record::tests::synced
guard 'a directory beside the transcripts is synced' src/record/directory.rs \
    '.try_for_each(|changed| sync_directory(changed))' '.try_for_each(|_| Ok(()))' \
    --lib record::tests::synced
guard 'a new blob is synced' src/record/blobs.rs \
    $'file.sync_data()?;\n        }' $'}' --lib record::tests::synced
guard 'the name of a new blob is synced' src/record/blobs.rs \
    $'fs::rename(&part, &path)?;\n        if durability == Durability::Data {' \
    $'fs::rename(&part, &path)?;\n        if false {' --lib record::tests::synced
guard 'a new directory of blobs is synced' src/record/blobs.rs \
    'sync_directory(parent(&self.directory))?;' '' --lib record::tests::synced
guard 'a blob that somebody else wrote is synced' src/record/blobs.rs \
    $'file.sync_data()?;\n            sync_directory' 'sync_directory' --lib record::tests::synced
guard 'the name of a blob that somebody else wrote is synced' src/record/blobs.rs \
    $'file.sync_data()?;\n            sync_directory(&self.directory)?;' 'file.sync_data()?;' \
    --lib record::tests::synced

# Reading.
guard 'the checksum' src/transcript/jsonl.rs \
    'if crc32c::crc32c(json) != crc {' 'if false {' --lib record::tests::crashes
guard 'ids are not repeated' src/transcript/jsonl.rs \
    'if id < self.expected {' 'if false {' --lib record::fuzzed
guard 'ids are not missing' src/transcript/jsonl.rs \
    'if id > self.expected {' 'if false {' --lib record::fuzzed
guard 'a torn line is closed' src/record/journal.rs \
    "line.insert(0, b'\\n');" '' --lib record::tests::crashes
guard 'a torn line is described' src/record/mod.rs \
    'recorder.record(Event::Note(Note::Torn(torn)))?;' 'let _ = torn;' --lib record::tests::crashes
guard 'damage is refused' src/record/mod.rs \
    'if !found.damage.is_empty() && damage == OnDamage::Refuse && transcript.last().is_some() {' \
    'if false {' --lib record::tests::crashes
guard 'a newer format is refused' src/record/mod.rs \
    'if let Some(format) = newer(transcript) {' 'if let Some(format) = newer(transcript).filter(|_| false) {' \
    --lib record::tests::crashes
guard 'nothing is written after a failure' src/record/journal.rs \
    'self.failed = true;' 'self.failed = false;' --lib record::tests::crashes
guard 'nothing is written once an entry is lost' src/record/mod.rs \
    'let Some(source) = self.view.transcript().lost().cloned() else {' \
    'let Some(source) = self.view.transcript().lost().cloned().filter(|_| false) else {' --test it shelved
guard 'nothing is sent once an entry is lost' src/record/mod.rs \
    'self.journal.sync()?;' 'return self.journal.sync();' --lib record::tests::index
guard 'a batch has one process' src/cli/batch/going.rs \
    'let _lock = BatchLock::take(&which.file, which.name.as_deref(), process)?;' '' --test it cli::batch

# Durable before effect.
guard 'a call is durably started before its effect' src/agent/call.rs \
    'recorder.sync()?;' '' --test it crash::lost
guard 'a call is started before the tool' src/agent/call.rs \
    'self.record(recorder, Event::Started(Started { call: ready.id }))?;' '' --test it resumed
guard 'a result is durable before the next request' src/agent/ask.rs \
    'recorder.sync()?;' '' --test it crash::lost
guard 'a started call is not run again' src/agent/call.rs \
    'if view.working().started.contains(&id) {' 'if false {' --test it resumed

# The sandbox.
guard 'what is protected is fixed in its place' src/sandbox/scene.rs \
    'scene.shown.extend(fixed);' 'drop(fixed);' \
    --test it confined::attempts
guard 'what settings of version control name is held' src/sandbox/repositories.rs \
    'for path in spelled.into_iter().chain([led]) {' \
    'for path in spelled.into_iter().chain([led]).take(0) {' --test it confined::settings
guard 'no terminal of the user by Landlock alone' src/sandbox/landlock.rs \
    'rules.add(Path::new("/proc"), read)?;' \
    'rules.add(Path::new("/proc"), read)?; rules.add(Path::new("/dev/pts"), all)?;' \
    --test it confined::inherited
guard 'a place is held while another run needs it' src/sandbox/placeholders.rs \
    'opened.lock(FlockOperation::NonBlockingLockExclusive)?;' '' --lib sandbox::placeholders
guard 'a place is let go of though a copy of it is open' src/sandbox/placeholders.rs \
    'self.lock(FlockOperation::Unlock).ok();' '' --lib sandbox::placeholders
guard 'another name of what is protected is told' src/sandbox/repositories.rs \
    'self.remember_linked(&path);' '' --test it confined::repositories
guard 'memory to share is limited' src/sandbox/mounts.rs \
    'write!(options, ",size={}", memory / 2).ok();' '' --test it confined::limits
guard 'the rules of Landlock' src/sandbox/mod.rs \
    'let landlock = landlock::restrict(bounds, &protected, mechanism)?;' \
    'let landlock = bounds.newest_landlock();' --test it confined::
guard 'the filter of system calls' src/sandbox/mod.rs \
    'seccomp::filter(bounds, mechanism, landlock)?;' '' --test it confined::escapes
guard 'capabilities are dropped' src/sandbox/mod.rs \
    'privileges::drop_all()?;' '' --test it confined::escapes
guard 'what a run was started with stays out' src/hands/attend.rs \
    'descriptors::close_inherited()' 'Ok::<(), std::io::Error>(())' --test it confined::inherited
guard 'what is laid over something is still there' src/hands/fallen.rs \
    'let path = self.walls?.breach()?;' 'let path = self.walls?.breach().filter(|_| false)?;' \
    --test it confined::fallen
guard 'a change that pretends to be old is told' src/hands/watched.rs \
    'let changed = (data.ctime(), data.ctime_nsec());' 'let changed = ();' --lib hands::watched
guard 'links out of repositories are told of' src/hands/left.rs \
    'if !led.starts_with(repository) {' 'if false {' --test it confined::left
guard 'what was left before is remembered' src/hands/maker.rs \
    'let charter = self.charter.after(self.before.get());' \
    'let charter = self.charter.after(None);' --test it confined::left
guard 'what was replaced is told' src/hands/replaced.rs \
    'found.insert(name, known_by(text.trim().as_bytes()));' '' --test it confined::left
guard 'what is opened up lies where it is looked for' src/hands/own.rs \
    'let Ok(opened) = sandbox::open(&path) else {' \
    'let Ok(opened) = fs::File::open(&path).map(std::os::fd::OwnedFd::from) else {' --lib hands::own
guard 'nothing is laid for submodules' src/sandbox/repositories.rs \
    'self.fix(&root, &modules, Kind::Directory)?;' '' --test it confined::repositories
guard 'bare repositories are protected' src/sandbox/repositories.rs \
    'Sort::Bare => search.bare(root, &entry),' 'Sort::Bare => {}' --test it confined::repositories
guard 'known values are recorded nowhere' src/record/mod.rs \
    'let event = self.known.event(event);' '' --test it cli::import
guard 'tools see listed variables only' src/tools/workspace.rs \
    '.filter(|(name, _)| may(name))' '.filter(|(name, _)| may(name) || true)' --lib tools::workspace
guard 'a link in the place of a directory' src/tools/survey.rs \
    '(real.iter().eq(whole.iter())).then_some(opened)' 'Some(opened)' --lib tools::survey
guard 'notes of a project are its own' src/instructions/agents.rs \
    'below.is_ok_and(|below| below.iter().all(|part| part != ".git"))' 'below.is_ok() || root != real' \
    --lib instructions
guard 'a warden ends what hands leave' src/hands/warden.rs \
    'family::end_strays();' '' --test it confined::multiplied
guard 'what becomes another program is looked at again' src/tools/descent.rs \
    'Given::NotYet => return None,' 'Given::NotYet => return Some(Vec::new()),' --lib tools::descent
guard 'what goes on without its first thread ends' src/tools/descent.rs \
    'ended: is_zombie && threads <= 1,' 'ended: is_zombie,' --test it confined::ends
guard 'a warden that a tool has stopped goes on' src/hands/keeper.rs \
    'rustix::process::kill_process(leader, Signal::CONT).ok();' '' --test it confined::multiplied::a_warden
guard 'hands that a tool has stopped go on' src/hands/warden.rs \
    'rustix::process::kill_process(hands, Signal::CONT)?;' '' --test it confined::multiplied
guard 'what was ended at once is told once' src/hands/limits.rs \
    'one.began <= self.until && (self.at_once || one.ended)' 'false' --lib hands::limits
guard 'nobody is ended for what is going' src/hands/limits.rs \
    '!self.holds(one) && !self.alone.contains(&one.identity())' 'true' --lib hands::limits
guard 'a disk is not filled' src/hands/limits.rs \
    'let is_short = free < *least;' 'let is_short = false;' --lib hands::limits
guard 'a disk is not filled with names' src/hands/limits.rs \
    '&& place.files.is_passed(files, few)' '&& place.files.is_passed(files, 0)' --test it confined::limits
guard 'a code is no part of another word' src/hands/unreached.rs \
    '!is_word || !before.ends_with(is_part)' 'true || !before.ends_with(is_part)' --lib hands::hints
guard 'only hosts that were named' src/hands/proxy.rs \
    'if !is_allowed(&host, port, &hosts) {' 'if false {' --test it confined::a
guard 'nothing follows a request' src/hands/proxy.rs \
    '&mut (&mut said).take(length)' '&mut said' --lib hands::proxy
guard 'what was allowed is what is done' src/hands/asked.rs \
    'let Some(order) = exactly(order, wish) else {' 'let Some(order) = Some(order) else {' \
    --test it confined::asked
guard 'what decides lies where tools do not write' src/cli/asked.rs \
    '!is_argument || !path.is_dir()' 'false' --test it cli::sandbox
guard 'what decides is given no place where tools write' src/cli/asked.rs \
    'if let Some(written) = written {' 'if let Some(written) = written.filter(|_| false) {' \
    --test it cli::sandbox
guard 'what decides has no name where tools write' src/cli/asked.rs \
    'if has_names_elsewhere(&path) {' 'if false {' --test it cli::sandbox
guard 'a port of a host is asked for' src/hands/asked.rs \
    'if let Some(known) = ports.get(&wish) {' 'if let Some(known) = ports.values().next() {' \
    --test it confined::asked
guard 'a pair of sockets sends to no name' src/sandbox/seccomp.rs \
    'if !apart {' 'if false {' --test it confined::escapes
guard 'no file gives others the rights of its owner' src/sandbox/seccomp.rs \
    'rules.extend(modes::rules(bounds)?);' '' --test it confined::modes
guard 'no link of the workspace leads what a run is told' src/cli/told.rs \
    'planted::check(&path, &what, hands.root(), process)?;' '' --test it hostile
guard 'no link of the workspace leads the form of an answer' src/cli/answer_form.rs \
    'planted::check(path, &what, workspace, process)?;' '' --test it hostile
guard 'a run that is taken up has the workspace in which it began' src/cli/planted.rs \
    '(None, Some(run)) => {' '(None, Some(run)) if run.is_empty() => {' --test it hostile
guard 'no link of the workspace leads what is written' src/cli/run.rs \
    'planted::check_written(args, &start, process)?;' '' --test it hostile::nothing_is_written
guard 'an index elsewhere is not believed' src/cli/site.rs \
    'Ok(if is_ours {' 'Ok(if is_ours || path.is_file() {' --test it confined::program
guard 'who becomes another program is looked at again' src/tools/family.rs \
    'Some(Next::Those(self.becoming))' 'None' --lib tools::family
guard 'who ends all that lives second waits' src/tools/family.rs \
    'let _ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);' 'let _ending = &ENDING;' \
    --lib tools::family
guard 'a sleep ends while signals arrive' src/tools/descent.rs \
    'while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(Errno::INTR) {}' \
    'let _ = until; std::thread::sleep(PAUSE);' --lib tools::descent
guard 'a shared directory that cannot be made is told' src/hands/modes.rs \
    '|| line.contains(directory) && line.contains(missing)' '' --test it confined::modes::whoever
guard 'devices keep their attributes' src/sandbox/mounts.rs \
    'self.show(&Shown::at(Path::new(device), Right::Read))?;' \
    'self.show(&Shown::at(Path::new(device), Right::Write))?;' --test it confined::walls::devices
guard 'what stands for a value does not overwrite it' src/tools/stand_in.rs \
    '(count(new) > count(old)).then(|| {' '(count(new) > usize::MAX - count(old)).then(|| {' --lib tools::tests
guard 'a value is found in whatever means it' src/secret/known.rs \
    'Patterns::meant,' '' --lib secret::tests::known

exit "$failed"
