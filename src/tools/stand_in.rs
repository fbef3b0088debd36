//! What stands in texts for a value that nothing shows, and must not take its place in a file.

use crate::secret::IN_ITS_PLACE;

/// Why a file is not written whose new text holds more of it than the old one: a value would be lost that
/// whoever wrote the text could not read.
pub(crate) fn loss(old: &[u8], new: &[u8]) -> Option<String> {
    (count(new) > count(old)).then(|| {
        format!(
            "`{IN_ITS_PLACE}` only stands for a value that is not shown, and would take its place. Change \
             other lines with Edit, without that text in `old` or `new`; if the characters themselves are \
             meant, write them with a command."
        )
    })
}

/// What is said of a new file that holds it.
pub(crate) fn remark(new: &[u8]) -> Option<String> {
    (count(new) > 0).then(|| {
        format!("[`{IN_ITS_PLACE}` stands in it as it is, not the value that is shown so]")
    })
}

/// What is said where a text is not found that holds it.
pub(crate) fn advice(text: &str) -> Option<String> {
    text.contains(IN_ITS_PLACE).then(|| {
        format!(
            "`{IN_ITS_PLACE}` only stands for a value that is not shown: leave it out of `old`."
        )
    })
}

fn count(bytes: &[u8]) -> usize {
    let sought = IN_ITS_PLACE.as_bytes();
    bytes
        .windows(sought.len())
        .filter(|at| *at == sought)
        .count()
}
