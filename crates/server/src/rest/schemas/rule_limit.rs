//! The limit of a rule: a number, or numbers by the value of an attribute.

use std::borrow::Cow;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{Object, ObjectBuilder, OneOfBuilder, SchemaFormat, Type},
    },
};

/// Only described: utoipa cannot derive a schema for the fields that callers name.
pub(in crate::rest) enum RuleLimit {}

fn units() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::Custom("uint32".to_owned())))
        .minimum(Some(1))
        .maximum(Some(u32::MAX))
        .build()
}

fn by_plan() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(
            "Units by the value of the attribute `by`: at most 64 values. `default` applies to all \
             other checks, also those without the attribute; if left out, the lowest limit does.",
        ))
        .property(
            "by",
            ObjectBuilder::new()
                .schema_type(Type::String)
                .min_length(Some(1))
                .max_length(Some(64))
                .pattern(Some("^[A-Za-z0-9_.-]+$")),
        )
        .required("by")
        .property("default", units())
        .additional_properties(Some(Schema::Object(units())))
        .build()
}

impl PartialSchema for RuleLimit {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new()
            .description(Some("Units per window: a number, or numbers by plan."))
            .item(units())
            .item(by_plan())
            .into()
    }
}

impl ToSchema for RuleLimit {
    fn name() -> Cow<'static, str> {
        "RuleLimit".into()
    }
}
