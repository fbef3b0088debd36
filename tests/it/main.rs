//! All integration tests, in one binary.

#[cfg(test)]
mod draft;
#[cfg(test)]
mod generate;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod readings;
#[cfg(test)]
mod laws;
