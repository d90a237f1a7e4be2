//! The command line.

/// Parts to measure, and the length of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    quick: bool,
    only: Option<Part>,
}

/// A part of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Speed,
    Memory,
    Redis,
    Reservations,
    Leases,
    Server,
    Tls,
    Envoy,
    Quota,
    Guard,
}

impl Options {
    pub(crate) const USAGE: &str = "usage: bench/run [--quick] [--only speed|memory|redis|reservations|leases|server|tls|envoy|quota|guard]";

    /// Parses the arguments; `None` if they are invalid.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--only" => options.only = Some(Part::named(&arguments.next()?)?),
                _ => return None,
            }
        }
        Some(options)
    }

    pub(crate) fn wants(self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    pub(crate) const fn rounds(self) -> usize {
        if self.quick { 2 } else { 7 }
    }

    pub(crate) const fn is_quick(self) -> bool {
        self.quick
    }

    /// Factor by which a quick run has fewer decisions.
    pub(crate) const fn thinning(self) -> usize {
        if self.quick { 8 } else { 1 }
    }
}

impl Part {
    fn named(name: &str) -> Option<Self> {
        match name {
            "speed" => Some(Self::Speed),
            "memory" => Some(Self::Memory),
            "redis" => Some(Self::Redis),
            "reservations" => Some(Self::Reservations),
            "leases" => Some(Self::Leases),
            "server" => Some(Self::Server),
            "tls" => Some(Self::Tls),
            "envoy" => Some(Self::Envoy),
            "quota" => Some(Self::Quota),
            "guard" => Some(Self::Guard),
            _ => None,
        }
    }
}
