//! `#[activities]` on an impl block.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Error, FnArg, ImplItem, ImplItemFn, ItemImpl, Result, Type};

use crate::activity::{self, Parameters, WHAT};
use crate::arguments::{self, without_self};
use crate::options::Named;
use crate::{attributes, function};

pub(crate) fn expand(options: TokenStream, mut block: ItemImpl) -> Result<TokenStream> {
    if !options.is_empty() {
        return Err(Error::new_spanned(options, "`#[activities]` has no options; `#[activity(name = \"…\")]` has"));
    }
    let this = plain_type(&block, "activities")?;
    let mut beside = TokenStream::new();
    let mut markers = Vec::new();
    let mut items = Vec::new();
    for item in std::mem::take(&mut block.items) {
        let ImplItem::Fn(mut method) = item else {
            items.push(item);
            continue;
        };
        let Some(attribute) = attributes::take(&mut method.attrs, "activity") else {
            items.push(ImplItem::Fn(method));
            continue;
        };
        let (methods, outside, marker) = expand_method(&this, &method, Named::of(&attribute)?)?;
        items.push(ImplItem::Verbatim(methods));
        beside.extend(outside);
        let cfg = attributes::cfg(&method.attrs);
        markers.push(quote!(#(#cfg)* list.add::<#marker>();));
    }
    if markers.is_empty() {
        let text = "no method here is marked `#[activity]`, so there is nothing to serve";
        return Err(Error::new_spanned(&block.self_ty, text));
    }
    block.items = items;
    Ok(quote! {
        #block
        #beside

        impl ::dacapo::Activities for #this {
            fn list(list: &mut ::dacapo::ActivityList<'_, Self>) {
                #(#markers)*
            }
        }
    })
}

/// Returns the type of an impl block, which must have no parameters and no trait.
pub(crate) fn plain_type(block: &ItemImpl, attribute: &str) -> Result<Type> {
    if !block.generics.params.is_empty() {
        let text = format!("`#[{attribute}]` stands on the impl block of a type without parameters");
        return Err(Error::new_spanned(&block.generics, text));
    }
    if let Some((_, path, _)) = &block.trait_ {
        let text = format!("`#[{attribute}]` stands on a type's own impl block, not on that of a trait");
        return Err(Error::new_spanned(path, text));
    }
    Ok((*block.self_ty).clone())
}

/// Returns the last segment of a type's path.
pub(crate) fn short_name(this: &Type) -> String {
    match this {
        Type::Path(path) => path.path.segments.last().map(|last| arguments::unraw(&last.ident)).unwrap_or_default(),
        _ => String::new(),
    }
}

fn expand_method(
    this: &Type,
    method: &ImplItemFn,
    options: Named,
) -> Result<(TokenStream, TokenStream, proc_macro2::Ident)> {
    let ImplItemFn { attrs, vis, sig, block, .. } = method;
    check_receiver(method)?;
    function::check(sig, WHAT)?;
    let output = function::output(sig, WHAT)?;
    let ident = &sig.ident;
    let (owner, plain) = (short_name(this), arguments::unraw(ident));
    let marker = format_ident!("__{owner}_{plain}", span = ident.span());
    let body = format_ident!("__{plain}", span = ident.span());
    let mut parameters = Parameters::of(&arguments::typed(&sig.inputs))?;
    let name = options.name.map_or_else(|| format!("{owner}::{plain}"), |name| name.value());

    let (outer, inner) = (attributes::outer(attrs), attributes::inner(attrs));
    let cfg = attributes::cfg(attrs);
    let (asyncness, inputs) = (&sig.asyncness, &sig.inputs);
    let (names, types) = (parameters.names(), parameters.types());
    let start = activity::start(asyncness.is_some(), quote!(self.#body(#(#names),*)));
    let methods = quote! {
        #(#outer)*
        #vis fn #ident(self: ::std::sync::Arc<Self>, #(#names: #types),*) -> ::dacapo::Attempt<#marker> {
            #start
        }

        #(#cfg)*
        #(#inner)*
        #asyncness fn #body(#inputs) -> #output #block
    };

    for argument in &mut parameters.arguments {
        argument.ty = syn::parse2(without_self(&argument.ty, this))?;
    }
    let call = parameters.call(quote!(<#this>::#ident), quote!(__receiver.clone(),));
    let output = without_self(output, this);
    let definition =
        activity::definition(&marker, &name, asyncness.is_some(), &parameters, &output, quote!(#this), call);
    let outside = quote! {
        #(#cfg)*
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #vis enum #marker {}

        #(#cfg)*
        #definition
    };
    Ok((methods, outside, marker))
}

fn check_receiver(method: &ImplItemFn) -> Result<()> {
    let text = "an activity of a value takes `self: Arc<Self>`: attempts share the value and may outlive each other";
    match method.sig.inputs.first() {
        Some(FnArg::Receiver(receiver))
            if receiver.colon_token.is_some() && arguments::is_called(&receiver.ty, "Arc") =>
        {
            Ok(())
        }
        Some(FnArg::Receiver(receiver)) => Err(Error::new_spanned(receiver, text)),
        _ => Err(Error::new_spanned(&method.sig.ident, format!("{text}; without a value, write it as a function"))),
    }
}
