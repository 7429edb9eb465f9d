//! The arguments of a workflow or an activity: names, types, and how they are encoded.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{Error, FnArg, Pat, PatType, Result, Type};

/// The most arguments of one input.
const MOST: usize = 4;

pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
}

impl Argument {
    /// Reads the arguments, and checks that they can be decoded.
    pub(crate) fn all(inputs: &[&PatType], what: &str) -> Result<Vec<Self>> {
        if let Some(extra) = inputs.get(MOST) {
            let text = format!("{what} takes {MOST} arguments at most: put the rest into a struct");
            return Err(Error::new_spanned(extra, text));
        }
        inputs.iter().enumerate().map(|(place, input)| Self::of(input, place, what)).collect()
    }

    pub(crate) fn of(input: &PatType, place: usize, what: &str) -> Result<Self> {
        match &*input.ty {
            Type::Reference(reference) => {
                let text = format!(
                    "{what} owns its arguments, because they are decoded from a record: take `String` and not `&str`, `T` and not `&T`"
                );
                Err(Error::new_spanned(reference, text))
            }
            Type::ImplTrait(generic) => {
                let text = format!("{what} has plain types, because its arguments are decoded from a record");
                Err(Error::new_spanned(generic, text))
            }
            ty => Ok(Self { name: plain_name(&input.pat, place), ty: ty.clone() }),
        }
    }
}

/// Returns the name of a parameter, or a generated one for a pattern.
pub(crate) fn plain_name(pat: &Pat, place: usize) -> Ident {
    match pat {
        Pat::Ident(pat) if pat.subpat.is_none() => pat.ident.clone(),
        _ => format_ident!("argument{place}"),
    }
}

/// Returns the typed parameters of a function, without its receiver.
pub(crate) fn typed(inputs: &syn::punctuated::Punctuated<FnArg, syn::Token![,]>) -> Vec<&PatType> {
    let mut typed = Vec::new();
    for input in inputs {
        match input {
            FnArg::Typed(input) => typed.push(input),
            FnArg::Receiver(_) => {}
        }
    }
    typed
}

/// Writes the one type of all arguments: `()`, the type itself, or a tuple.
pub(crate) fn input_type(arguments: &[Argument]) -> TokenStream {
    let types: Vec<&Type> = arguments.iter().map(|argument| &argument.ty).collect();
    match &types[..] {
        [ty] => quote!(#ty),
        types => quote!((#(#types),*)),
    }
}

/// Writes a pattern, which is also an expression, over all arguments: `()`, a name, or a tuple.
pub(crate) fn input_names(arguments: &[Argument]) -> TokenStream {
    let names: Vec<&Ident> = arguments.iter().map(|argument| &argument.name).collect();
    match &names[..] {
        [name] => quote!(#name),
        names => quote!((#(#names),*)),
    }
}

/// Writes the functions that encode and decode an input, one payload for each argument.
pub(crate) fn codec(arguments: &[Argument]) -> TokenStream {
    let input = input_names(arguments);
    let names: Vec<&Ident> = arguments.iter().map(|argument| &argument.name).collect();
    let types: Vec<&Type> = arguments.iter().map(|argument| &argument.ty).collect();
    let texts: Vec<String> = names.iter().map(|name| unraw(name)).collect();
    quote! {
        #[allow(unused_variables, clippy::let_unit_value)]
        fn encode(
            __input: Self::Input,
            __converter: &::dacapo::Converter,
        ) -> ::core::result::Result<::std::vec::Vec<::dacapo::Payload>, ::dacapo::Failure> {
            let #input = __input;
            ::core::result::Result::Ok(::std::vec![#(__converter.encode(&#names)?),*])
        }

        #[allow(unused_mut, unused_parens, clippy::unused_unit, clippy::let_unit_value)]
        fn decode(
            __input: ::std::vec::Vec<::dacapo::Payload>,
            __converter: &::dacapo::Converter,
        ) -> ::core::result::Result<Self::Input, ::dacapo::Failure> {
            let mut __arguments = ::dacapo::__macros::Arguments::new(__input, __converter);
            let __input = (#(__arguments.take::<#types>(#texts)?),*);
            __arguments.end()?;
            ::core::result::Result::Ok(__input)
        }
    }
}

/// Returns an identifier as text, without `r#`.
pub(crate) fn unraw(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").unwrap_or(&text).to_owned()
}

/// Replaces `Self` in the tokens, for items outside the impl block.
pub(crate) fn without_self(tokens: impl ToTokens, this: &Type) -> TokenStream {
    let replace = |tree| match tree {
        TokenTree::Ident(ident) if ident == "Self" => this.to_token_stream(),
        TokenTree::Group(group) => {
            let mut inner = proc_macro2::Group::new(group.delimiter(), without_self(group.stream(), this));
            inner.set_span(group.span());
            TokenTree::Group(inner).into()
        }
        other => other.into(),
    };
    tokens.into_token_stream().into_iter().map(replace).collect::<Vec<TokenStream>>().into_iter().collect()
}

/// Returns whether a type's last segment has this name: a macro cannot tell types apart any better.
pub(crate) fn is_called(ty: &Type, name: &str) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == name),
        Type::Group(group) => is_called(&group.elem, name),
        _ => false,
    }
}
