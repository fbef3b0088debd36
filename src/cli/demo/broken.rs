//! What is broken in the project, and where: drawn from a seed.

use std::borrow::Cow;

use crate::cli::demo::draw::Draw;
use crate::cli::demo::mutate::{self, Operator};
use crate::cli::demo::project::{self, File};

/// One broken line of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// What kind of slip it is.
    pub(crate) operator: Operator,
    /// The file.
    pub(crate) path: &'static str,
    /// The line, from 1.
    pub(crate) line: usize,
    /// What stood there.
    pub(crate) before: String,
    /// What stands there now.
    pub(crate) after: String,
}

impl Broken {
    /// Every way in which an operator can break the project.
    pub(crate) fn all(operator: Operator, files: &[File]) -> Vec<Self> {
        let mut all = Vec::new();
        for (path, text) in files.iter().filter(|(path, _)| project::is_source(path)) {
            let words = mutate::words(text);
            for (line, before) in (1..).zip(text.lines()) {
                let changed = operator.changed(before, &words).into_iter();
                all.extend(changed.map(|after| Self {
                    operator,
                    path,
                    line,
                    before: before.to_owned(),
                    after,
                }));
            }
        }
        all
    }

    /// One of them all, drawn: first the operator, then the place.
    pub(crate) fn drawn(draw: &mut Draw, files: &[File]) -> Option<Self> {
        let operator = *draw.one(&Operator::ALL);
        let all = Self::all(operator, files);
        (!all.is_empty()).then(|| draw.one(&all).clone())
    }

    /// The files with this line in them.
    pub(crate) fn within(&self, files: &[File]) -> Vec<File> {
        let broken = files.iter().map(|(path, text)| {
            if *path != self.path {
                return (*path, text.clone());
            }
            let lines = (1..).zip(text.lines());
            let lines = lines.map(|(line, text)| match line {
                line if line == self.line => self.after.as_str(),
                _ => text,
            });
            let text = lines.flat_map(|line| [line, "\n"]).collect::<String>();
            (*path, Cow::Owned(text))
        });
        broken.collect()
    }
}
