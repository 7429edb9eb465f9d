//! `#[activity]` on a function.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{ItemFn, PatType, Result};

use crate::arguments::{self, Argument};
use crate::options::Named;
use crate::{attributes, function};

/// The words for an activity in error messages.
pub(crate) const WHAT: &str = "an activity";

pub(crate) fn expand(options: TokenStream, function: ItemFn) -> Result<TokenStream> {
    let options = Named::parse(options)?;
    let ItemFn { attrs, vis, sig, block } = &function;
    function::check(sig, WHAT)?;
    let output = function::output(sig, WHAT)?;
    let ident = &sig.ident;
    let marker = format_ident!("__{}", arguments::unraw(ident), span = ident.span());
    let parameters = Parameters::of(&arguments::typed(&sig.inputs))?;
    let name = options.name.map_or_else(|| arguments::unraw(ident), |name| name.value());

    let (outer, inner) = (attributes::outer(attrs), attributes::inner(attrs));
    let (names, types) = (parameters.names(), parameters.types());
    let (asyncness, inputs) = (&sig.asyncness, &sig.inputs);
    let start = start(asyncness.is_some(), quote!(__body(#(#names),*)));
    let call = parameters.call(quote!(#ident), quote!());
    let definition = definition(&marker, &name, asyncness.is_some(), &parameters, &output, quote!(()), call);
    let cfg = attributes::cfg(attrs);
    Ok(quote! {
        #(#outer)*
        #vis fn #ident(#(#names: #types),*) -> ::dacapo::Attempt<#marker> {
            #(#inner)*
            #asyncness fn __body(#inputs) -> #output #block
            #start
        }

        #(#cfg)*
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #vis enum #marker {}

        #(#cfg)*
        #definition
    })
}

/// Writes the attempt that a call makes.
pub(crate) fn start(awaits: bool, body: TokenStream) -> TokenStream {
    match awaits {
        true => quote!(::dacapo::Attempt::new(#body)),
        false => quote!(::dacapo::Attempt::blocking(move || #body)),
    }
}

/// The parameters of an activity: perhaps its ctx, then its arguments.
pub(crate) struct Parameters {
    ctx: Option<Argument>,
    pub(crate) arguments: Vec<Argument>,
}

impl Parameters {
    pub(crate) fn of(inputs: &[&PatType]) -> Result<Self> {
        let takes_ctx = inputs.first().is_some_and(|first| arguments::is_called(&first.ty, "ActivityCtx"));
        let (ctx, inputs) = inputs.split_at(usize::from(takes_ctx));
        let ctx = ctx.first().map(|ctx| Argument { name: arguments::plain_name(&ctx.pat, 4), ty: (*ctx.ty).clone() });
        Ok(Self { ctx, arguments: Argument::all(inputs, WHAT)? })
    }

    pub(crate) fn names(&self) -> Vec<&Ident> {
        self.ctx.iter().chain(&self.arguments).map(|argument| &argument.name).collect()
    }

    pub(crate) fn types(&self) -> Vec<&syn::Type> {
        self.ctx.iter().chain(&self.arguments).map(|argument| &argument.ty).collect()
    }

    /// Writes the call of the function with the worker's values. Parameters may have any name, so the generated ones
    /// begin with two underscores.
    pub(crate) fn call(&self, function: TokenStream, receiver: TokenStream) -> TokenStream {
        let ctx = self.ctx.as_ref().map(|_| quote!(__ctx,));
        let names: Vec<&Ident> = self.arguments.iter().map(|argument| &argument.name).collect();
        let input = arguments::input_names(&self.arguments);
        quote! {
            let _ = (&__receiver, &__ctx);
            // An argument may bear the function's own name.
            let __function = #function;
            let #input = __input;
            __function(#receiver #ctx #(#names),*)
        }
    }
}

/// Writes the definition of an activity, on its marker.
pub(crate) fn definition(
    marker: &Ident,
    name: &str,
    awaits: bool,
    parameters: &Parameters,
    output: &TokenStream,
    receiver: TokenStream,
    call: TokenStream,
) -> TokenStream {
    let input = arguments::input_type(&parameters.arguments);
    let codec = arguments::codec(&parameters.arguments);
    let outcome = function::outcome(output);
    let blocking = !awaits;
    quote! {
        impl ::dacapo::ActivityType for #marker {
            const NAME: &'static str = #name;
            const BLOCKING: bool = #blocking;
            type Receiver = #receiver;
            type Input = #input;
            #outcome
            #codec

            fn attempt(
                __receiver: &::std::sync::Arc<Self::Receiver>,
                __ctx: ::dacapo::ActivityCtx,
                __input: Self::Input,
            ) -> ::dacapo::Attempt<Self> {
                #call
            }
        }
    }
}
