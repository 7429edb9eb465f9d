//! The options in the parentheses of an attribute: `name = "…"` and the like.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{Attribute, LitStr, Meta, Result};

/// The options of an activity, a signal, a query or an update.
#[derive(Default)]
pub(crate) struct Named {
    pub(crate) name: Option<LitStr>,
}

impl Named {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| match meta.path.is_ident("name") {
            true => set_name(&mut options.name, &meta),
            false => Err(meta.error("the one option here is `name = \"…\"`")),
        });
        parser.parse2(tokens)?;
        Ok(options)
    }

    /// Reads the options of an attribute that this macro itself removes from its method.
    pub(crate) fn of(attribute: &Attribute) -> Result<Self> {
        match &attribute.meta {
            Meta::Path(_) => Ok(Self::default()),
            Meta::List(list) => Self::parse(list.tokens.clone()),
            Meta::NameValue(_) => Err(syn::Error::new_spanned(attribute, "write it as `#[…(name = \"…\")]`")),
        }
    }
}

/// The options of a workflow.
pub(crate) struct WorkflowOptions {
    pub(crate) name: Option<LitStr>,
    pub(crate) order: TokenStream,
    pub(crate) unfinished_handlers: TokenStream,
}

impl WorkflowOptions {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self {
            name: None,
            order: quote!(::dacapo::Order::HandlersFirst),
            unfinished_handlers: quote!(::dacapo::UnfinishedHandlers::WarnAndAbandon),
        };
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("name") {
                set_name(&mut options.name, &meta)
            } else if meta.path.is_ident("order") {
                let word: LitStr = meta.value()?.parse()?;
                options.order = match word.value().as_str() {
                    "root_first" => quote!(::dacapo::Order::RootFirst),
                    "handlers_first" => quote!(::dacapo::Order::HandlersFirst),
                    _ => return Err(one_of(&word, "order", &["root_first", "handlers_first"])),
                };
                Ok(())
            } else if meta.path.is_ident("unfinished_handlers") {
                let word: LitStr = meta.value()?.parse()?;
                options.unfinished_handlers = match word.value().as_str() {
                    "warn_and_abandon" => quote!(::dacapo::UnfinishedHandlers::WarnAndAbandon),
                    "wait" => quote!(::dacapo::UnfinishedHandlers::Wait),
                    _ => return Err(one_of(&word, "unfinished_handlers", &["warn_and_abandon", "wait"])),
                };
                Ok(())
            } else {
                Err(meta.error("the options of a workflow are `name`, `order` and `unfinished_handlers`"))
            }
        });
        parser.parse2(tokens)?;
        Ok(options)
    }
}

fn set_name(slot: &mut Option<LitStr>, meta: &ParseNestedMeta<'_>) -> Result<()> {
    let name: LitStr = meta.value()?.parse()?;
    if name.value().is_empty() {
        return Err(syn::Error::new_spanned(name, "a name is not empty: others find it by its name"));
    }
    *slot = Some(name);
    Ok(())
}

fn one_of(word: &LitStr, option: &str, words: &[&str]) -> syn::Error {
    let words: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
    syn::Error::new_spanned(word, format!("`{option}` is {}", words.join(" or ")))
}
