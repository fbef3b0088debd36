//! Every body is judged before it is sent, in programs that are built for tests.
//!
//! Where the variable `UNDERTEXT_BODIES` names a directory, one body of each shape is kept there, for
//! judges outside of this program.

use std::fs;
use std::path::Path;

use crate::id::Digest;
use crate::setup::Model;
use crate::wire::judge::{judge, shape};

/// The variable that names the directory.
const BODIES: &str = "UNDERTEXT_BODIES";

/// Judges a body that is about to be sent to a model.
pub(super) fn before_it_is_sent(body: &[u8], model: &Model) {
    let judged = judge(body, model);
    debug_assert!(
        judged.is_ok(),
        "a body that a provider would refuse, {judged:?}: {}",
        String::from_utf8_lossy(body)
    );
    #[expect(
        clippy::disallowed_methods,
        reason = "it is no setting: only those who test this program set it"
    )]
    let directory = std::env::var(BODIES);
    if let (Ok(directory), Some(shape)) = (directory, shape(body)) {
        let name = format!("{}.json", Digest::of(shape.as_bytes()).hex());
        let path = Path::new(&directory).join(name);
        if !path.exists() {
            let written = fs::write(&path, body);
            debug_assert!(written.is_ok(), "cannot keep a body: {written:?}");
        }
    }
}
