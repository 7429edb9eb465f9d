//! Signatures as Rust writes them, from rustdoc's JSON.

use serde_json::Value;

/// A list of what `shown` makes of the values.
fn joined(values: &Value, between: &str, shown: impl Fn(&Value) -> String) -> String {
    let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
    values.iter().map(shown).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(between)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The one key of an object, and its value; a bare word has no value.
fn only(value: &Value) -> (&str, &Value) {
    match value {
        Value::String(word) => (word, &Value::Null),
        Value::Object(object) => object.iter().next().map_or(("", &Value::Null), |(key, value)| (key.as_str(), value)),
        _ => ("", &Value::Null),
    }
}

pub(super) fn ty(value: &Value) -> String {
    let (kind, of) = only(value);
    match kind {
        "resolved_path" => path(of),
        "generic" | "primitive" => text(of).to_owned(),
        "tuple" => match of.as_array().map(Vec::len) {
            Some(1) => format!("({},)", joined(of, ", ", ty)),
            _ => format!("({})", joined(of, ", ", ty)),
        },
        "slice" => format!("[{}]", ty(of)),
        "array" => format!("[{}; {}]", ty(&of["type"]), text(&of["len"])),
        "borrowed_ref" => {
            let lifetime = of["lifetime"].as_str().map(|name| format!("{name} ")).unwrap_or_default();
            let mutable = if of["is_mutable"] == true { "mut " } else { "" };
            format!("&{lifetime}{mutable}{}", ty(&of["type"]))
        }
        "impl_trait" => format!("impl {}", bounds(of)),
        "dyn_trait" => {
            let lifetime = of["lifetime"].as_str().map(|name| format!(" + {name}")).unwrap_or_default();
            format!("dyn {}{lifetime}", joined(&of["traits"], " + ", |bound| path(&bound["trait"])))
        }
        "qualified_path" => match text(&of["trait"]["path"]).is_empty() {
            true => format!("{}::{}", ty(&of["self_type"]), text(&of["name"])),
            false => format!("<{} as {}>::{}", ty(&of["self_type"]), path(&of["trait"]), text(&of["name"])),
        },
        "function_pointer" => format!("fn{}", signature(&of["sig"])),
        "infer" => "_".to_owned(),
        other => other.to_owned(),
    }
}

/// A path with its arguments, by its last name.
pub(super) fn path(value: &Value) -> String {
    let name = text(&value["path"]).rsplit("::").next().unwrap_or_default();
    format!("{name}{}", arguments(&value["args"]))
}

fn arguments(value: &Value) -> String {
    let (kind, of) = only(value);
    match kind {
        "angle_bracketed" => {
            let own = joined(&of["args"], ", ", |argument| match only(argument) {
                ("type", of) => ty(of),
                ("lifetime", name) => text(name).to_owned(),
                (other, _) => other.to_owned(),
            });
            let bound = joined(&of["constraints"], ", ", |constraint| {
                let name = text(&constraint["name"]);
                match only(&constraint["binding"]) {
                    ("equality", to) => format!("{name} = {}", ty(&to["type"])),
                    (_, to) => format!("{name}: {}", bounds(to)),
                }
            });
            let all: Vec<String> = [own, bound].into_iter().filter(|part| !part.is_empty()).collect();
            if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
        }
        "parenthesized" => {
            let output = if of["output"].is_null() { String::new() } else { format!(" -> {}", ty(&of["output"])) };
            format!("({}){output}", joined(&of["inputs"], ", ", ty))
        }
        _ => String::new(),
    }
}

pub(super) fn bounds(value: &Value) -> String {
    joined(value, " + ", |bound| match only(bound) {
        ("trait_bound", of) => {
            let modifier = if of["modifier"] == "maybe" { "?" } else { "" };
            format!("{modifier}{}", path(&of["trait"]))
        }
        ("outlives", lifetime) => text(lifetime).to_owned(),
        _ => String::new(),
    })
}

/// `<T: Serialize>`, without what `impl Trait` stands for.
pub(super) fn generics(value: &Value) -> String {
    let shown = joined(&value["params"], ", ", |param| {
        let name = text(&param["name"]);
        match only(&param["kind"]) {
            ("type", of) if of["is_synthetic"] == true => String::new(),
            ("type", of) => match bounds(&of["bounds"]) {
                bounds if bounds.is_empty() => name.to_owned(),
                bounds => format!("{name}: {bounds}"),
            },
            ("const", of) => format!("const {name}: {}", ty(&of["type"])),
            _ => name.to_owned(),
        }
    });
    if shown.is_empty() { shown } else { format!("<{shown}>") }
}

/// ` where F: Fn(T) -> P`.
pub(super) fn conditions(value: &Value) -> String {
    let shown = joined(&value["where_predicates"], ", ", |predicate| match only(predicate) {
        ("bound_predicate", of) => format!("{}: {}", ty(&of["type"]), bounds(&of["bounds"])),
        _ => String::new(),
    });
    if shown.is_empty() { shown } else { format!(" where {shown}") }
}

/// `(&self, value: T) -> Self`.
fn signature(value: &Value) -> String {
    let inputs = joined(&value["inputs"], ", ", |input| {
        let (name, given) = (text(&input[0]), ty(&input[1]));
        match (name, given.as_str()) {
            ("self", "Self") => "self".to_owned(),
            ("self", "&Self") => "&self".to_owned(),
            ("self", "&mut Self") => "&mut self".to_owned(),
            ("" | "_", _) => given,
            _ => format!("{name}: {given}"),
        }
    });
    let output = if value["output"].is_null() { String::new() } else { format!(" -> {}", ty(&value["output"])) };
    format!("({inputs}){output}")
}

pub(super) fn function(name: &str, value: &Value) -> String {
    let header = &value["header"];
    let word = |on: &str, word: &str| if header[on] == true { format!("{word} ") } else { String::new() };
    format!(
        "{}{}fn {name}{}{}{}",
        word("is_const", "const"),
        word("is_async", "async"),
        generics(&value["generics"]),
        signature(&value["sig"]),
        conditions(&value["generics"])
    )
}

/// The ids of all paths within a signature.
pub(super) fn named_in(value: &Value, found: &mut Vec<u64>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| named_in(value, found)),
        Value::Object(object) => {
            if let (Some(_), Some(id)) = (object.get("path"), object.get("id").and_then(Value::as_u64)) {
                found.push(id);
            }
            object.values().for_each(|value| named_in(value, found));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn signature_is_rendered_as_rust_writes_it() {
        let name = json!({"resolved_path": {"path": "crate::Name", "id": 7, "args": null}});
        let list = json!({"resolved_path": {"path": "Vec", "id": 8, "args":
            {"angle_bracketed": {"args": [{"type": name}], "constraints": []}}}});
        let value = json!({
            "header": {"is_const": false, "is_async": true},
            "generics": {"params": [{"name": "T", "kind": {"type": {"is_synthetic": false, "bounds":
                [{"trait_bound": {"trait": {"path": "serde::Serialize", "id": 9, "args": null}, "modifier": "none"}}]}}}],
                "where_predicates": []},
            "sig": {"inputs": [["self", {"borrowed_ref": {"lifetime": null, "is_mutable": false, "type": {"generic": "Self"}}}],
                ["value", {"generic": "T"}]], "output": list},
        });
        assert_eq!(function("send", &value), "async fn send<T: Serialize>(&self, value: T) -> Vec<Name>");
        let mut found = Vec::new();
        named_in(&value, &mut found);
        found.sort_unstable();
        assert_eq!(found, [7, 8, 9]);
    }
}
