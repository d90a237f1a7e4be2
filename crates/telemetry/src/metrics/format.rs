use http::{HeaderMap, HeaderValue, header::ACCEPT};

/// A text format of metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Prometheus's text format, 0.0.4.
    #[default]
    Prometheus,
    /// `OpenMetrics` 1.0.0, with exemplars.
    OpenMetrics,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::Prometheus, Self::OpenMetrics];

    const OPEN_METRICS: &str = "application/openmetrics-text";

    /// Returns the format that the `accept` header prefers. `OpenMetrics` has to be asked for by
    /// name: `*/*` gets Prometheus's format.
    pub fn accepted(headers: &HeaderMap) -> Self {
        let ranges = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let (mut open, mut plain) = (0.0, 0.0_f32);
        for range in ranges.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let (mut quality, mut version) = (1.0_f32, "1.0.0");
            for (key, value) in parts.filter_map(|part| part.split_once('=')) {
                match key.trim_end().to_ascii_lowercase().as_str() {
                    "q" => quality = value.trim().parse().unwrap_or(0.0),
                    "version" => version = value.trim().trim_matches('"'),
                    _ => {}
                }
            }
            if name.eq_ignore_ascii_case(Self::OPEN_METRICS) {
                // 0.0.1 is the same format before it had a number of its own.
                if matches!(version, "1.0.0" | "0.0.1") {
                    open = quality.max(open);
                }
            } else if ["text/plain", "text/*", "*/*"].contains(&name) {
                plain = quality.max(plain);
            }
        }
        if open > 0.0 && open >= plain { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Returns the `content-type` of the text.
    pub const fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        })
    }

    pub(super) const fn place(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_has_to_be_asked_for_by_name_and_version() {
        for (accept, expected) in [
            ("application/openmetrics-text; version=1.0.0", Format::OpenMetrics),
            ("application/openmetrics-text", Format::OpenMetrics),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                 application/openmetrics-text;version=0.0.1;q=0.5,\
                 text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                 text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                Format::OpenMetrics,
            ),
            ("application/openmetrics-text;version=2.0.0", Format::Prometheus),
            ("application/openmetrics-text;q=0.2,text/plain;q=0.5", Format::Prometheus),
            ("application/openmetrics-text;q=0", Format::Prometheus),
            ("application/openmetrics-text;q=much", Format::Prometheus),
            ("text/plain", Format::Prometheus),
            ("*/*", Format::Prometheus),
            ("", Format::Prometheus),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(Format::accepted(&headers), expected, "{accept}");
        }
        assert_eq!(Format::accepted(&HeaderMap::new()), Format::Prometheus);
    }
}
