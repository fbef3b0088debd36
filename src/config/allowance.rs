//! What tools may take of the machine, as settings say it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::config::section::AllowanceSection;
use crate::setup::Allowance;

/// A number of bytes that is not nothing, written `512KiB`, `300MiB`, `8GiB` or `1TiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// The units, the largest first, and how often two is multiplied to get one.
const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];

/// A text says no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no size, such as 300MiB or 8GiB")]
pub struct SizeError(String);

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (digits, power) = UNITS
                .into_iter()
                .find_map(|(unit, power)| Some((text.strip_suffix(unit)?, power)))?;
            if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << power)?;
            Some(Self(bytes)).filter(|_| bytes > 0)
        };
        read().ok_or_else(|| SizeError(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |power: &u32| self.0.is_multiple_of(1 << power);
        // What no source can say is told as the least that holds it.
        let unit = UNITS.into_iter().find(|(_, power)| whole(power));
        let (unit, power) = unit.unwrap_or(("KiB", 10));
        write!(f, "{}{unit}", self.0.div_ceil(1 << power))
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Size {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "size", "pattern": "^[0-9]+(Ki|Mi|Gi|Ti)B$"})
    }
}

/// What tools may take: what is given, and else what is built in.
pub(super) fn allowance(section: AllowanceSection) -> Allowance {
    let AllowanceSection {
        memory,
        processes,
        open_files,
        file_size,
        free_disk,
    } = section;
    let mut allowance = Allowance::default();
    memory
        .map(|size| size.map(|Size(bytes)| bytes))
        .put(&mut allowance.memory);
    processes.map(u64::from).put(&mut allowance.processes);
    open_files.map(u64::from).put(&mut allowance.open_files);
    file_size
        .map(|Size(bytes)| bytes)
        .put(&mut allowance.file_size);
    free_disk
        .map(|Size(bytes)| bytes)
        .put(&mut allowance.free_disk);
    allowance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_with_a_unit() {
        for (text, bytes, said) in [
            ("1KiB", 1 << 10, "1KiB"),
            ("300MiB", 300 << 20, "300MiB"),
            ("1024MiB", 1 << 30, "1GiB"),
            ("64GiB", 64 << 30, "64GiB"),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)));
            assert_eq!(Size(bytes).to_string(), said);
        }
        let huge = format!("{}TiB", u64::MAX);
        for text in [
            "", "0GiB", "GiB", "8", "8GB", "-1GiB", "1.5GiB", "8 GiB", &huge,
        ] {
            let error = text.parse::<Size>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("`{text}` is no size, such as 300MiB or 8GiB")
            );
        }
    }
}
