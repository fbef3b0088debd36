//! Whether a shell may end in another directory than it began in, by the text of its command alone.
//!
//! Only words of the shell itself can take it elsewhere. Where it is certain that a command has none of
//! these, nothing need be asked of its shell at the end, which can then become the last program that
//! it runs.

/// Words of the shell that take it nowhere, whatever follows them. `printf`, `test` and others are none: they
/// read some of their arguments as the shell does.
const HARMLESS: &str = ": echo exit false kill pwd true type ulimit umask";

/// All its other words that begin a command and are no program's name, of bash and of POSIX.
///
/// One that a shell has besides matters only if it takes the shell elsewhere.
const WORDS: &str = ". alias bg bind break builtin caller case cd chdir command compgen complete compopt continue \
    coproc declare dirs disown do done elif else enable esac eval exec export fc fg fi for \
    function getopts hash help history if in jobs let local logout mapfile popd printf pushd read \
    readarray readonly return select set shift shopt source suspend test then time times trap \
    typeset unalias unset until wait while";

/// Whether its shell may end elsewhere. Only what is plain enough to be certain is told not to: programs and
/// their arguments, with pipes, redirections, and one after another.
pub(crate) fn may_move(command: &str) -> bool {
    let mut rest = command;
    let mut begins = true;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        let Some(first) = rest.chars().next() else {
            return false;
        };
        // In the order of their lengths: what is longer is not taken for what is shorter.
        let joins = ["&&", "||", "|", ";", "\n"];
        if let Some(after) = joins.iter().find_map(|it| rest.strip_prefix(it)) {
            // What stands before the first command, or twice, is an error that the shell finds.
            (rest, begins) = (after, true);
        } else if let Some(after) = redirected(rest) {
            // A target is a word like any other.
            let after = after.trim_start_matches([' ', '\t']);
            let Some(length) = word(after) else {
                return true;
            };
            rest = &after[length..];
        } else if first == '#' {
            return true;
        } else {
            let Some(length) = word(rest) else {
                return true;
            };
            if begins && !is_plain_program(&rest[..length]) {
                return true;
            }
            (rest, begins) = (&rest[length..], false);
        }
    }
}

/// What stands behind a redirection at the beginning of this, but not of the text of a command.
fn redirected(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let operators = [">>", ">&", ">", "<"];
    let after = operators.iter().find_map(|it| text.strip_prefix(it))?;
    // Texts that follow, processes in the place of files, and what is opened for both.
    (!after.starts_with(['<', '>', '(', '&', '|'])).then_some(after)
}

/// The length of the word at the beginning of this; `None` if it is not plain, or there is none.
fn word(text: &str) -> Option<usize> {
    let mut chars = text.char_indices();
    while let Some((place, char)) = chars.next() {
        match char {
            '\'' => {
                chars.find(|(_, char)| *char == '\'')?;
            }
            '"' => loop {
                match chars.next()? {
                    (_, '"') => break,
                    (_, '`' | '\\') => return None,
                    (place, '$') if !is_variable(&text[place..]) => return None,
                    _ => {}
                }
            },
            ' ' | '\t' | '\n' | '|' | ';' | '&' | '<' | '>' => {
                return (place > 0).then_some(place);
            }
            '`' | '\\' | '(' | ')' => return None,
            '$' if !is_variable(&text[place..]) => return None,
            _ => {}
        }
    }
    (!text.is_empty()).then_some(text.len())
}

/// Whether no more than a variable's value stands here, which never becomes an operator.
fn is_variable(text: &str) -> bool {
    let name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '?');
    text.chars().nth(1).is_some_and(name)
}

/// Whether this names a program, or a word of the shell that takes it nowhere, without anything that
/// would become another word.
fn is_plain_program(word: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+./".contains(&byte);
    let is_among = |words: &str| words.split_ascii_whitespace().any(|it| it == word);
    is_among(HARMLESS) || (word.bytes().all(is_plain) && !is_among(WORDS))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_plain_stays_and_what_could_move_may() {
        for stays in [
            "",
            "ls",
            "  cargo test --quiet 2>&1 | tail -n 20",
            "git status --short && git diff HEAD~1 -- src; exit $?",
            "grep -rn 'cd /; (x)' src \"tests $HOME\" >found.txt 2>/dev/null </dev/null",
            "./run a=b {x,y} *.rs #tag # >>log\nls x 2>>log || echo \"none\"",
            "ls cd",
        ] {
            // A comment is not looked into.
            let stays = stays.replace("#tag # ", "");
            assert!(!may_move(&stays), "{stays}");
        }
        for may in [
            "cd src",
            "ls; cd src",
            "ls && cd src",
            "true|| cd src",
            "ls\ncd src",
            ">x cd src",
            "3>x cd src",
            "12</dev/null cd src",
            "printf -v 'BASH_ALIASES[ls]' cd",
            "[ -v x ]",
            "ls # a\ncd src",
            "pushd src",
            "chdir src",
            "eval 'cd src'",
            ". ./x",
            "source x",
            "builtin cd src",
            "command cd src",
            "\"cd\" src",
            "c'd' src",
            "c\\d src",
            "$x src",
            "[c]d src",
            "{cd,src}",
            "A=b cd src",
            "! cd src",
            "f() { cd src; }; f",
            "if cd src; then ls; fi",
            "ls $(cat x)",
            "ls `cat x`",
            "ls ${x:=y}",
            "ls <<x\nx\ncd src",
            "ls <(cat x)",
            "ls & cd src",
            "ls 'unclosed",
            "ls >",
            "trap 'cd src' EXIT",
        ] {
            assert!(may_move(may), "{may}");
        }
    }

    /// What commands are made of here.
    fn soup() -> Vec<&'static str> {
        let words = r#"cd d, d,echo,true,pushd d,eval cd d,'cd' d,"cd" d,$x,$y,;,&&,||,|, , ,>f ,<f ,3>f ,0<f ,2>&1,',",\,"#;
        let more = "{ , },(,),$(,`,#,&,! ,a=b ,[c]d d,<<d,if ,; then ,; fi,\n,\t";
        words.split(',').chain(more.split(',')).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn a_shell_that_is_said_to_stay_stays(
            words in prop::collection::vec(prop::sample::select(soup()), 1..7),
        ) {
            let command = words.concat();
            if may_move(&command) {
                return Ok(());
            }
            let directory = tempfile::tempdir().unwrap();
            std::fs::create_dir(directory.path().join("d")).unwrap();
            std::fs::write(directory.path().join("f"), "").unwrap();
            #[expect(clippy::disallowed_methods, reason = "a real shell is the judge")]
            let shell = |command: &str| {
                let output = std::process::Command::new("bash")
                    .args(["-c", command])
                    .current_dir(directory.path())
                    .env("x", "cd d")
                    .env("y", "; cd d")
                    .output()
                    .unwrap();
                String::from_utf8_lossy(&output.stdout).into_owned()
            };
            let printed = shell(&format!("trap 'printf \"\\n%s\" \"at:$PWD\"' EXIT; {command}"));
            let begun = shell("printf \"at:$PWD\"");
            // What the shell cannot read it does not run.
            let is_read = printed.contains("\nat:");
            prop_assert!(!is_read || printed.ends_with(&begun), "{command:?}: {printed:?}");
        }
    }
}
