//! gRPC, and gRPC-Web for browsers and gateways without HTTP/2.
//!
//! The messages are the same. gRPC ends with HTTP trailers; gRPC-Web, which cannot rely on them,
//! with another frame that contains them as text.

use http::{HeaderMap, HeaderValue, Method, Request, Response, Version, header::CONTENT_TYPE};
use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Frame};
use tonic::body::Body;

/// The protocol of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// gRPC over HTTP/2.
    Grpc,
    /// Binary gRPC-Web over any version of HTTP.
    Web,
}

/// The flag of a frame with trailers.
const TRAILERS: u8 = 0x80;

impl Protocol {
    /// The protocol of a request, if it is supported. The text form of gRPC-Web is not.
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

    /// Encodes a response for the caller.
    pub(super) fn encode(self, response: Response<Body>) -> Response<Body> {
        match self {
            Self::Grpc => response,
            Self::Web => web(response),
        }
    }
}

/// Returns true if `rest` may follow the name of a protocol: nothing, a format or a parameter.
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

/// Encodes trailers as the last frame: a flag, a length, and a line for each.
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

    fn protocol(version: Version, method: &str, content_type: &str) -> Option<Protocol> {
        let request = Request::builder().method(method).version(version);
        Protocol::of(&request.header(CONTENT_TYPE, content_type).body(()).unwrap())
    }

    #[test]
    fn grpc_needs_http_2_and_grpc_web_does_not() {
        for content_type in ["application/grpc", "application/grpc+proto", "application/grpc; a=b"]
        {
            let spoken = protocol(Version::HTTP_2, "POST", content_type);
            assert_eq!(spoken, Some(Protocol::Grpc), "{content_type}");
            assert_eq!(protocol(Version::HTTP_11, "POST", content_type), None, "{content_type}");
        }
        for version in [Version::HTTP_11, Version::HTTP_2] {
            for content_type in ["application/grpc-web", "application/grpc-web+proto"] {
                assert_eq!(protocol(version, "POST", content_type), Some(Protocol::Web));
                assert_eq!(protocol(version, "GET", content_type), None);
            }
        }
    }

    #[test]
    fn other_content_types_are_not_supported() {
        for content_type in [
            "",
            "text/plain",
            "application/grpcx",
            "application/grpc-web-text",
            "application/grpc-",
        ] {
            assert_eq!(protocol(Version::HTTP_2, "POST", content_type), None, "{content_type}");
        }
    }

    #[test]
    fn trailers_are_lines_in_a_frame() {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        assert_eq!(frame_of(&trailers), &b"\x80\0\0\0\x10grpc-status: 0\r\n"[..]);
    }
}
