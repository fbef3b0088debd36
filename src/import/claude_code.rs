use crate::import::Unread;
use crate::import::pen::Pen;
use crate::import::source::Source;

pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let mut pen = Pen::default();
    let mut lines = source.lines();
    while let Some(_line) = lines.next()? {
        pen.skipped();
    }
    Ok(vec![pen])
}
