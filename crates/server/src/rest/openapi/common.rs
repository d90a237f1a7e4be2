//! Parts that many operations share.

use utoipa::{
    Modify,
    openapi::{
        Content, HeaderBuilder, Object, OpenApi, Ref, RefOr, Response, ResponseBuilder, Type,
        path::{Operation, PathItem},
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

/// Authentication by a bearer token.
pub(super) struct Token;

/// Every operation of the API refuses query parameters that it does not have.
pub(super) struct UnknownParameters;

/// Every answer says which request it is for.
pub(super) struct RequestIds;

impl Modify for Token {
    fn modify(&self, document: &mut OpenApi) {
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "A JWT of the configured issuer, a configured token, or the admin token",
            ))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
    }
}

impl Modify for UnknownParameters {
    fn modify(&self, document: &mut OpenApi) {
        let paths = document.paths.paths.iter_mut();
        let items = paths.filter(|(path, _)| path.starts_with("/api/v1/")).map(|(_, item)| item);
        for operation in items.flat_map(operations) {
            let refused = ResponseBuilder::new()
                .description("Unknown query parameters; `details` lists them.")
                .content("application/json", Content::new(Some(Ref::from_schema_name("Error"))))
                .build();
            let responses = &mut operation.responses.responses;
            responses.entry("400".to_owned()).or_insert(RefOr::T(refused));
        }
    }
}

impl Modify for RequestIds {
    fn modify(&self, document: &mut OpenApi) {
        let items = document.paths.paths.values_mut();
        let answers = items.flat_map(operations).flat_map(|it| it.responses.responses.values_mut());
        for answer in answers {
            if let RefOr::T(answer) = answer {
                add_request_id(answer);
            }
        }
    }
}

fn add_request_id(answer: &mut Response) {
    let header = HeaderBuilder::new()
        .schema(Object::with_type(Type::String))
        .description(Some("Which request this answers, as in the log"))
        .build();
    answer.headers.insert("X-Request-Id".to_owned(), header);
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let all = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
    all.into_iter().flatten()
}
