//! What a provider of little patience refuses in the schema of a tool.

use crate::wire::judge::json::Json;

/// What is refused in a schema or in one within it; `None` if nothing is.
pub(super) fn refused(schema: &Json<'_>) -> Option<&'static str> {
    let Some(members) = schema.members() else {
        return Some("has a schema that is no object");
    };
    for (name, value) in members {
        match &**name {
            "$ref" | "$defs" | "definitions" | "$schema" | "$id" | "$anchor" => {
                return Some("has a schema with references");
            }
            "additionalProperties"
            | "patternProperties"
            | "unevaluatedProperties"
            | "const"
            | "oneOf"
            | "allOf"
            | "not"
            | "if"
            | "then"
            | "else"
            | "prefixItems" => {
                return Some("has a schema with a keyword that is refused");
            }
            "type" if value.text().is_none() => return Some("has a schema with several types"),
            "anyOf" if schema.member("type").is_some() => {
                return Some("has a schema with alternatives beside a type");
            }
            "anyOf" => {
                let wrong = value.items().unwrap_or_default().iter().find_map(refused);
                if wrong.is_some() {
                    return wrong;
                }
            }
            "properties" => {
                let properties = value.members().unwrap_or_default().iter();
                if let Some(wrong) = properties
                    .map(|(_, of)| refused(of))
                    .find_map(|wrong| wrong)
                {
                    return Some(wrong);
                }
            }
            "items" => {
                if let Some(wrong) = refused(value) {
                    return Some(wrong);
                }
            }
            _ => {}
        }
    }
    let is_list = schema.get("type").text() == Some("array");
    (is_list && schema.member("items").is_none()).then_some("has a list without items")
}
