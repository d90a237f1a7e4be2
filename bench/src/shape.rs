//! The traffic patterns.

use std::{fmt, time::Duration};

use crate::{
    contestant::{Entrant, Quota},
    random::Random,
    stream::Stream,
    zipf::Zipf,
};

const THOUSAND: usize = 1_000;
const MILLION: usize = 1_000_000;

/// A traffic pattern: the keys, their order, and the share that is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    HotKey,
    ThousandKeys,
    MillionZipf,
    MillionUniform,
    MillionDistinct,
    MostlyDenied,
}

/// Part of a shape that a limiter gets in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portion {
    /// Number of keys from the start of the stream.
    pub(crate) decisions: usize,
    /// Repetitions, each with a new limiter.
    pub(crate) passes: usize,
}

impl Shape {
    pub(crate) const ALL: [Self; 6] = [
        Self::HotKey,
        Self::ThousandKeys,
        Self::MillionZipf,
        Self::MillionUniform,
        Self::MillionDistinct,
        Self::MostlyDenied,
    ];

    /// Units that a subject of a preloaded shape has taken before timing starts: its state stays
    /// live for the whole run, so that no limiter may evict it.
    pub(crate) const PRELOAD: u32 = 100;

    const BURST: u32 = 4_000_000;
    const SMALL_BURST: u32 = 10;

    /// Limitador is much slower, so that a part of the stream is enough.
    const LIMITADOR_PART: usize = 20;

    pub(crate) const fn is_million(self) -> bool {
        matches!(self, Self::MillionZipf | Self::MillionUniform | Self::MillionDistinct)
    }

    pub(crate) const fn subjects(self) -> usize {
        match self {
            Self::HotKey => 1,
            Self::ThousandKeys | Self::MostlyDenied => THOUSAND,
            Self::MillionZipf | Self::MillionUniform | Self::MillionDistinct => MILLION,
        }
    }

    /// Returns true if all subjects are known before timing starts.
    pub(crate) const fn is_preloaded(self) -> bool {
        matches!(self, Self::MillionZipf | Self::MillionUniform)
    }

    /// One token refills every 6 s: too slow to matter in a run.
    pub(crate) const fn quota(self) -> Quota {
        let burst = match self {
            Self::MostlyDenied => Self::SMALL_BURST,
            _ => Self::BURST,
        };
        Quota { count: 100, period: Duration::from_mins(10), burst }
    }

    /// Expected share of admitted decisions.
    pub(crate) const fn admitted(self) -> f64 {
        match self {
            Self::MostlyDenied => 0.1,
            _ => 1.0,
        }
    }

    /// Returns the requests of one round, fewer by the factor `thinning`.
    pub(crate) fn stream(self, round: usize, thinning: usize) -> Stream {
        let mut random = Random::new(round as u64);
        let len = MILLION / thinning;
        match self {
            Self::HotKey => Stream::new((0..len).map(|_| 0)),
            Self::ThousandKeys => Stream::new((0..len).map(|_| random.below(THOUSAND))),
            Self::MillionUniform => Stream::new((0..len).map(|_| random.below(MILLION))),
            Self::MillionZipf => {
                let zipf = Zipf::new(MILLION);
                Stream::new((0..len).map(|_| zipf.draw(&mut random)))
            }
            Self::MillionDistinct => {
                // A step that shares no factor with a million reaches every subject, none twice.
                let start = random.below(MILLION);
                Stream::new((0..MILLION).map(|i| (start + i * 611_953) % MILLION))
            }
            Self::MostlyDenied => {
                let len = THOUSAND * Self::SMALL_BURST as usize * 10;
                Stream::new((0..len).map(|_| random.below(THOUSAND)))
            }
        }
    }

    pub(crate) const fn portion(
        self,
        entrant: Entrant,
        stream: &Stream,
        thinning: usize,
    ) -> Portion {
        let slow = matches!(entrant, Entrant::Limitador);
        let all = stream.len();
        match self {
            Self::MostlyDenied if slow => Portion { decisions: all, passes: 1 },
            Self::MostlyDenied => Portion { decisions: all, passes: 8 / thinning },
            Self::MillionDistinct if slow => Portion { decisions: all / 5 / thinning, passes: 1 },
            _ if slow => Portion { decisions: all / Self::LIMITADOR_PART, passes: 1 },
            _ => Portion { decisions: all, passes: 1 },
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HotKey => "one hot key",
            Self::ThousandKeys => "1,000 keys",
            Self::MillionZipf => "1 million keys, Zipf",
            Self::MillionUniform => "1 million keys, uniform",
            Self::MillionDistinct => "1 million keys, all distinct",
            Self::MostlyDenied => "90 % denied, 1,000 keys",
        })
    }
}
