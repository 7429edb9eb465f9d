//! Splits the attributes of a function: some stay on the function that the user sees, others go with its body.

use syn::Attribute;

/// Returns the attributes for the function that keeps its name.
pub(crate) fn outer(attributes: &[Attribute]) -> Vec<&Attribute> {
    let stays = ["doc", "cfg", "deprecated", "must_use", "allow", "expect", "warn", "deny"];
    attributes.iter().filter(|attribute| stays.iter().any(|name| attribute.path().is_ident(name))).collect()
}

/// Returns the attributes for the function that holds the body: lints, and attributes of other macros.
pub(crate) fn inner(attributes: &[Attribute]) -> Vec<&Attribute> {
    let goes = ["doc", "cfg", "deprecated", "must_use"];
    attributes.iter().filter(|attribute| !goes.iter().any(|name| attribute.path().is_ident(name))).collect()
}

/// Returns the attributes for items generated beside the function.
pub(crate) fn cfg(attributes: &[Attribute]) -> Vec<&Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect()
}

/// Removes and returns the attribute of this name.
pub(crate) fn take(attributes: &mut Vec<Attribute>, name: &str) -> Option<Attribute> {
    let place = attributes.iter().position(|attribute| attribute.path().is_ident(name))?;
    Some(attributes.remove(place))
}
