//! Every transcript that a program built for tests leaves behind is proved when its run ends.
//!
//! What was written is read again and folded anew: each request of the run must build to the digest
//! that was recorded for it. So no test can forget to look.

use crate::id::EntryId;
use crate::record::Recorder;
use crate::transcript::Event;
use crate::transcript::jsonl::{Item, Reader};
use crate::view::View;
use crate::wire::RENDERER;

/// The longest transcript that is looked at, in bytes: a proof takes as long as the run's requests.
const MOST: u64 = 8 << 20;

/// Proves the requests from this entry on, if the transcript can be read and is no large one. What
/// stands before it may have been written by hand.
pub(super) fn when_it_ends(recorder: &Recorder, since: EntryId) {
    let storage = recorder.storage();
    if !storage.length().is_ok_and(|length| length <= MOST) {
        return;
    }
    let Ok(bytes) = storage.read() else { return };
    let mut view = View::default();
    for item in Reader::new(bytes) {
        let Ok(Item::Entry { entry, .. }) = item else {
            return;
        };
        if let Event::Request(request) = &entry.event
            && entry.id >= since
            && request.renderer == RENDERER
        {
            let built = view.body_digest(&request.purpose);
            debug_assert_eq!(
                built,
                Some(request.body),
                "request e{} is another",
                entry.id
            );
        }
        view.take(entry);
    }
}
