//! The names of types in errors.

/// Returns the name of a type without the paths of modules: `HashMap<String, Vec<u8>>`.
pub(crate) fn short_type_name<T: ?Sized>() -> String {
    without_paths(std::any::type_name::<T>())
}

fn without_paths(full: &str) -> String {
    let ends_a_name = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
    full.split_inclusive(ends_a_name).map(|name| name.rsplit_once("::").map_or(name, |(_, last)| last)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn type_name_in_an_error_has_no_module_paths() {
        assert_eq!(short_type_name::<String>(), "String");
        assert_eq!(
            short_type_name::<HashMap<Vec<u8>, (Option<&str>, [i32; 2])>>(),
            "HashMap<Vec<u8>, (Option<&str>, [i32; 2])>"
        );
        assert_eq!(short_type_name::<dyn std::error::Error>(), "dyn Error");
    }
}
