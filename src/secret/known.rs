//! Exact values that must be nowhere.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, MatchKind};

use crate::secret::{encoded, meant, unbroken, variable};

/// What stands in the place of a value.
pub(crate) const IN_ITS_PLACE: &str = "[secret]";

/// A shorter value is no secret, or not one that can be told from other text.
const SHORTEST: usize = 8;

/// The shortest value of which parts are known as well.
const IN_PARTS: usize = 16;

/// Values that nothing may show or keep: keys, and what variables hold that are secret by their
/// name. [`replace`](Self::replace) finds each as it is, as JSON, shells and addresses write it, in
/// base64 and in hexadecimal even where lines end inside of it, and what is left of it where a text
/// was cut.
#[derive(Clone, Default)]
pub struct Known(Option<Arc<Patterns>>);

/// The values, and what finds them: made when the first text is looked through.
struct Patterns {
    values: Vec<String>,
    /// The values however they are spelled.
    whole: LazyLock<Option<AhoCorasick>, Finder>,
    /// The values in base64 and in hexadecimal, in a text without line ends.
    coded: LazyLock<Option<AhoCorasick>, Finder>,
    /// The first and the last characters of values, where a text may have been cut inside of them.
    parts: LazyLock<Option<AhoCorasick>, Finder>,
}

/// What makes that.
type Finder = Box<dyn FnOnce() -> Option<AhoCorasick> + Send>;

impl fmt::Debug for Known {
    /// Tells how many there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Known({})", self.count())
    }
}

impl Known {
    /// These values, and the lines of those that have several. What is shorter than eight
    /// characters, or a single word, cannot be told from other text and is left out.
    pub fn new<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> Self {
        let mut all: Vec<String> = Vec::new();
        for value in values {
            let value = value.as_ref().trim();
            let lines = value.lines().map(str::trim);
            let lines = lines.filter(|line| line.len() >= IN_PARTS && !line.starts_with("-----"));
            for part in std::iter::once(value).chain(lines) {
                if is_telling(part) && all.iter().all(|known| known != part) {
                    all.push(part.to_owned());
                }
            }
        }
        Self((!all.is_empty()).then(|| Arc::new(Patterns::of(all))))
    }

    /// What is secret in a variable: its value if the name says so, what looks like a secret in it,
    /// and what stands where addresses hold one. A path is none if `is_there` finds it.
    pub fn of_variable(name: &str, value: &str, is_there: impl Fn(&str) -> bool) -> Self {
        Self::new(variable::secrets(name, value.trim(), &is_there))
    }

    /// What is secret in an address: the password, and what its query says.
    pub fn of_address(address: &str) -> Self {
        let query = address.split_once('?').map_or("", |(_, query)| query);
        let values = query
            .split(['&', '#'])
            .filter_map(|pair| pair.split_once('='));
        let values = values.map(|(_, value)| value);
        let values = values.map(str::to_owned);
        let password = encoded::password(address).into_iter();
        Self::new(values.chain(password.flat_map(encoded::read)))
    }

    /// These and the others.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        if others.is_empty() {
            return self.clone();
        }
        Self::new(self.values().iter().chain(others.values()))
    }

    /// These but for what this text holds, which is to stay readable: say, the path of a workspace.
    #[must_use]
    pub fn but_for(&self, text: &str) -> Self {
        if !self.values().iter().any(|value| text.contains(value)) {
            return self.clone();
        }
        let others = self.values().iter();
        Self::new(others.filter(|value| !text.contains(*value)))
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        self.values().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn values(&self) -> &[String] {
        self.0.as_ref().map_or(&[], |known| &known.values)
    }

    /// Whether a text holds one.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|known| {
            let finders = [known.whole.as_ref(), known.parts.as_ref()];
            let coded = known.coded.as_ref();
            finders.into_iter().flatten().any(|it| it.is_match(text))
                || finders[0].is_some_and(|it| meant::is_match(it, text.as_bytes()))
                || coded.is_some_and(|it| unbroken::is_match(it, text.as_bytes()))
        })
    }

    /// The text with `[secret]` in place of each value.
    pub fn replace<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.replace_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The same for bytes that need not be text.
    pub fn replace_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(known) = &self.0 else {
            return Cow::Borrowed(bytes);
        };
        let mut new = Cow::Borrowed(bytes);
        for without in [
            Patterns::spelled,
            Patterns::meant,
            Patterns::coded,
            Patterns::cut,
        ] {
            if let Some(less) = without(known, &new) {
                new = Cow::Owned(less);
            }
        }
        new
    }
}

impl Patterns {
    fn of(values: Vec<String>) -> Self {
        let finder = |find: fn(&[String]) -> Option<AhoCorasick>| -> Finder {
            let values = values.clone();
            Box::new(move || find(&values))
        };
        Self {
            whole: LazyLock::new(finder(whole)),
            coded: LazyLock::new(finder(coded)),
            parts: LazyLock::new(finder(parts)),
            values,
        }
    }

    /// The bytes without the values; `None` if they hold none.
    fn spelled(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let whole = self.whole.as_ref()?;
        whole.is_match(bytes).then(|| {
            let mut new = Vec::with_capacity(bytes.len());
            whole.replace_all_with_bytes(bytes, &mut new, |_, _, new| {
                new.extend_from_slice(IN_ITS_PLACE.as_bytes());
                true
            });
            new
        })
    }

    /// The bytes without what means a value.
    fn meant(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        meant::replaced(self.whole.as_ref()?, bytes, IN_ITS_PLACE.as_bytes())
    }

    /// The bytes without what encodes a value.
    fn coded(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        unbroken::replaced(self.coded.as_ref()?, bytes, IN_ITS_PLACE.as_bytes())
    }

    /// The bytes without the rest of a value that was cut: most of it, or what ends where a line does, or
    /// begins where one begins.
    fn cut(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let parts = self.parts.as_ref()?;
        let mut new = Vec::new();
        let mut end = 0;
        let mut long = None;
        for found in parts.find_iter(bytes) {
            let long = long.get_or_insert_with(|| cuttable(&self.values));
            let values = long.iter();
            let rest = values.filter_map(|value| rest(value, bytes, found.start(), found.end()));
            let Some((from, to)) = rest.max_by_key(|(from, to)| to - from) else {
                continue;
            };
            if from < end {
                continue;
            }
            new.extend_from_slice(&bytes[end..from]);
            new.extend_from_slice(IN_ITS_PLACE.as_bytes());
            end = to;
        }
        (end > 0).then(|| {
            new.extend_from_slice(&bytes[end..]);
            new
        })
    }
}

/// How much of a value must be left for the rest to be known.
fn part(value: &[u8]) -> usize {
    (value.len() / 3).max(8)
}

/// How much of it is known whatever stands behind it: `strace` sets a quote and points there, `diff -y` what
/// the other file has, and who colours what it has found sets that apart.
fn most(value: &[u8]) -> usize {
    (value.len() / 2).max(20)
}

/// What is left of a value around these bytes, if it was cut there.
fn rest(value: &[u8], bytes: &[u8], from: usize, to: usize) -> Option<(usize, usize)> {
    let cuts: [&[u8]; 5] = [b"\n", b"\r", b"\x1b", "…".as_bytes(), b"\\n"];
    if bytes[from..].starts_with(&value[..part(value).min(value.len())]) {
        let same = value.iter().zip(&bytes[from..]).take_while(|(a, b)| a == b);
        let end = from + same.count();
        let behind = &bytes[end..];
        let is_cut = behind.is_empty() || cuts.iter().any(|cut| behind.starts_with(cut));
        if is_cut || end - from >= most(value) {
            return Some((from, end));
        }
    }
    if bytes[..to].ends_with(&value[value.len().saturating_sub(part(value))..]) {
        let same = value.iter().rev().zip(bytes[..to].iter().rev());
        let start = to - same.take_while(|(a, b)| a == b).count();
        let before = &bytes[..start];
        let is_cut = before.is_empty() || cuts.iter().any(|cut| before.ends_with(cut));
        if is_cut || to - start >= most(value) {
            return Some((start, to));
        }
    }
    None
}

/// What finds the values however they are spelled.
fn whole(values: &[String]) -> Option<AhoCorasick> {
    finder(values.iter().flat_map(|it| encoded::spelled(it)).collect())
}

/// What finds them in base64 and in hexadecimal.
fn coded(values: &[String]) -> Option<AhoCorasick> {
    let forms = values.iter().flat_map(|it| encoded::coded(it, is_telling));
    finder(forms.collect())
}

/// What finds their ends.
fn parts(values: &[String]) -> Option<AhoCorasick> {
    let long = cuttable(values);
    let ends = long.iter();
    let ends = ends.flat_map(|value| [&value[..part(value)], &value[value.len() - part(value)..]]);
    finder(ends.map(<[u8]>::to_vec).collect())
}

/// What is known by a part of it: long values as they are, in base64 and in hexadecimal.
fn cuttable(values: &[String]) -> Vec<Vec<u8>> {
    let long = values.iter().filter(|value| value.len() >= IN_PARTS);
    let forms = long.flat_map(|value| {
        let plain = std::iter::once(value.as_bytes().to_vec());
        plain.chain(encoded::once(value))
    });
    forms.filter(|form| form.len() >= IN_PARTS).collect()
}

/// What finds any of these, the longest first: one may begin with another. `None` if there is none.
fn finder(texts: Vec<Vec<u8>>) -> Option<AhoCorasick> {
    if texts.is_empty() {
        return None;
    }
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostLongest);
    // It fails at billions of bytes alone, which no variable holds.
    builder.build(texts).ok()
}

/// Whether a value is long enough, and more than one word.
fn is_telling(value: &str) -> bool {
    let word = value.len() < 24 && value.chars().all(|c| c.is_ascii_alphabetic());
    let stands_in = [
        "not-needed",
        "no-key",
        "lm-studio",
        "changeme",
        "placeholder",
        "sk-no-key-required",
        "x-oauth-basic",
        "x-access-token",
    ];
    value.len() >= SHORTEST && !word && !stands_in.contains(&value)
}
