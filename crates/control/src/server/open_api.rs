//! The document of the paths, in the form of OpenAPI.

use serde_json::{Map, Value, json};

use super::table::{ROUTES, Route};

/// Returns the document, made from the table of paths.
pub fn open_api() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(format!("/api/v1{}", route.path)).or_insert_with(|| json!({}));
        path[route.method.to_lowercase()] = operation(route);
    }
    paths.insert("/healthz".to_owned(), open("Say whether the process is there."));
    paths.insert("/readyz".to_owned(), open("Say whether the process can work."));
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Dacapo control API", "version": "1" },
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": {
                "Problem": {
                    "type": "object",
                    "required": ["title", "status", "detail"],
                    "properties": {
                        "title": { "type": "string" },
                        "status": { "type": "integer" },
                        "detail": { "type": "string", "description": "What happened, and what to do." },
                        "error": { "type": "object", "description": "The client's error, for programs." },
                    },
                },
            },
        },
        "security": [{ "token": [] }],
    })
}

fn open(summary: &str) -> Value {
    json!({ "get": { "summary": summary, "security": [], "responses": { "200": { "description": "Yes." } } } })
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    if route.path.contains("{workflow_id}") {
        parameters
            .push(json!({ "name": "workflow_id", "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    let of_query = |name: &&str| json!({ "name": name, "in": "query", "schema": { "type": kind(name) } });
    parameters.extend(route.query.iter().map(of_query));
    let mut operation = json!({
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            "200": { "description": "The answer.", "content": { "application/json": {} } },
            "default": {
                "description": "What went wrong.",
                "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
            },
        },
    });
    if let Some(body) = route.body {
        operation["requestBody"] =
            json!({ "content": { "application/json": { "schema": { "type": "object", "title": body } } } });
    }
    operation
}

fn kind(parameter: &str) -> &'static str {
    match parameter {
        "limit" => "integer",
        "stuck" => "boolean",
        _ => "string",
    }
}
