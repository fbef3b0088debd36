//! The program's own files where tools may reach: settings, transcripts, logs.
//!
//! They are hidden, and nothing can be put in their place.

use std::path::{Path, PathBuf};

use crate::sandbox::Bounds;
use crate::sandbox::paths::follow;

/// The directories between what may be written and what is hidden in it. Where they cannot be moved,
/// no others can stand in their place.
pub(super) fn on_the_way(bounds: &Bounds) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for hidden in &bounds.hidden {
        let real = real(hidden);
        for root in bounds.write.iter().filter(|root| real.starts_with(root)) {
            let above = real.ancestors().skip(1);
            let between = above.take_while(|path| path.starts_with(root) && path != root);
            found.extend(between.filter(|path| path.is_dir()).map(Path::to_owned));
        }
    }
    // Each is held once.
    found.sort();
    found.dedup();
    found.retain(|path| !bounds.read.contains(path) && !bounds.write.contains(path));
    found
}

fn real(path: &Path) -> PathBuf {
    follow(path, &[]).map_or_else(|_| path.to_owned(), |led| led.real)
}
