//! In which words a caller speaks: gRPC, or what browsers and gateways speak that have no HTTP/2.
//!
//! The messages are the same. gRPC ends with HTTP trailers; gRPC-Web, which cannot count on them, with one more
//! frame that holds them as text.

use axum::http::{
    HeaderMap, HeaderValue, Method, Request, Response, Version, header::CONTENT_TYPE,
};
use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Frame};
use tonic::body::Body;

/// How a caller speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// gRPC proper, over HTTP/2.
    Grpc,
    /// gRPC-Web in binary, over any HTTP.
    Web,
}

/// The bit that tells a frame of trailers from a frame of a message.
const TRAILERS: u8 = 0x80;

impl Dialect {
    /// How the request is spoken, if it can be understood. The text form of gRPC-Web cannot.
    pub(super) fn of<B>(request: &Request<B>) -> Option<Self> {
        let content_type =
            request.headers().get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
        let rest = content_type.strip_prefix(b"application/grpc")?;
        match rest.strip_prefix(b"-web") {
            None if is_suffix(rest) && request.version() == Version::HTTP_2 => Some(Self::Grpc),
            Some(rest) if is_suffix(rest) && request.method() == Method::POST => Some(Self::Web),
            _ => None,
        }
    }

    /// The answer, as the caller can read it.
    pub(super) fn said(self, response: Response<Body>) -> Response<Body> {
        match self {
            Self::Grpc => response,
            Self::Web => web(response),
        }
    }
}

/// Whether this may follow the name of a dialect: nothing, a format or a parameter.
fn is_suffix(rest: &[u8]) -> bool {
    matches!(rest, [] | [b'+' | b';', ..])
}

fn web(response: Response<Body>) -> Response<Body> {
    let mut response = response.map(|body| {
        Body::new(body.map_frame(|frame| match frame.into_trailers() {
            Ok(trailers) => Frame::data(frame_of(&trailers)),
            Err(message) => message,
        }))
    });
    let content_type = HeaderValue::from_static("application/grpc-web+proto");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// The trailers as the last frame: a mark, a length, and a line for each.
fn frame_of(trailers: &HeaderMap) -> Bytes {
    let mut lines = Vec::new();
    for (name, value) in trailers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            lines.extend_from_slice(part);
        }
    }
    let mut frame = vec![TRAILERS];
    frame.extend((lines.len() as u32).to_be_bytes());
    frame.append(&mut lines);
    frame.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect(version: Version, method: &str, content_type: &str) -> Option<Dialect> {
        let request = Request::builder().method(method).version(version);
        Dialect::of(&request.header(CONTENT_TYPE, content_type).body(()).unwrap())
    }

    #[test]
    fn grpc_proper_needs_http_2_and_grpc_web_does_not() {
        for content_type in ["application/grpc", "application/grpc+proto", "application/grpc; a=b"]
        {
            let spoken = dialect(Version::HTTP_2, "POST", content_type);
            assert_eq!(spoken, Some(Dialect::Grpc), "{content_type}");
            assert_eq!(dialect(Version::HTTP_11, "POST", content_type), None, "{content_type}");
        }
        for version in [Version::HTTP_11, Version::HTTP_2] {
            for content_type in ["application/grpc-web", "application/grpc-web+proto"] {
                assert_eq!(dialect(version, "POST", content_type), Some(Dialect::Web));
                assert_eq!(dialect(version, "GET", content_type), None);
            }
        }
    }

    #[test]
    fn anything_else_is_not_understood() {
        for content_type in [
            "",
            "text/plain",
            "application/grpcx",
            "application/grpc-web-text",
            "application/grpc-",
        ] {
            assert_eq!(dialect(Version::HTTP_2, "POST", content_type), None, "{content_type}");
        }
    }

    #[test]
    fn trailers_are_lines_in_a_frame() {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        assert_eq!(frame_of(&trailers), &b"\x80\0\0\0\x10grpc-status: 0\r\n"[..]);
    }
}
