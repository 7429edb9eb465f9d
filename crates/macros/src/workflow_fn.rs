//! `#[workflow]` on a function.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{Error, ItemFn, PatType, Result, Signature};

use crate::arguments::{self, Argument};
use crate::options::WorkflowOptions;
use crate::{attributes, function};

/// The words for a workflow in error messages.
pub(crate) const WHAT: &str = "a workflow";

pub(crate) fn expand(options: TokenStream, function: ItemFn) -> Result<TokenStream> {
    let options = WorkflowOptions::parse(options)?;
    let ItemFn { attrs, vis, sig, block } = &function;
    function::check(sig, WHAT)?;
    let output = function::output(sig, WHAT)?;
    let ident = &sig.ident;
    let marker = format_ident!("__{}", arguments::unraw(ident), span = ident.span());
    let (ctx, arguments) = parameters(sig, "ctx: Ctx")?;

    let (outer, inner, cfg) = (attributes::outer(attrs), attributes::inner(attrs), attributes::cfg(attrs));
    let inputs = &sig.inputs;
    let (ctx_name, ctx_ty, names) = (arguments::plain_name(&ctx.pat, 4), &ctx.ty, names(&arguments));
    let types: Vec<&syn::Type> = arguments.iter().map(|argument| &argument.ty).collect();
    let definition = Definition {
        this: quote!(#marker),
        name: options.name.as_ref().map_or_else(|| arguments::unraw(ident), |name| name.value()),
        options: &options,
        arguments: &arguments,
        output: &output,
        state: quote!(()),
        init: quote!(let _ = input;),
        handlers: quote!(let _ = ctx;),
        run: quote!(#ident),
    };
    let definition = definition.expand();
    Ok(quote! {
        #(#outer)*
        #vis fn #ident(#ctx_name: #ctx_ty, #(#names: #types),*) -> ::dacapo::WorkflowFuture<#marker> {
            #(#inner)*
            async fn __body(#inputs) -> #output #block
            ::dacapo::WorkflowFuture::new(__body(#ctx_name, #(#names),*))
        }

        #(#cfg)*
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #vis enum #marker {}

        #(#cfg)*
        #definition
    })
}

/// Returns the ctx and the arguments of a workflow function.
pub(crate) fn parameters<'s>(signature: &'s Signature, ctx: &str) -> Result<(&'s PatType, Vec<Argument>)> {
    if signature.asyncness.is_none() {
        return Err(Error::new_spanned(signature.fn_token, "a workflow is an `async fn`: it waits, and goes on later"));
    }
    let inputs = arguments::typed(&signature.inputs);
    let missing =
        format!("the first parameter of a workflow is its ctx: write `async fn {}({ctx}, …)`", signature.ident);
    let Some((first, rest)) = inputs.split_first() else {
        return Err(Error::new_spanned(&signature.ident, missing));
    };
    if signature.receiver().is_some() || !arguments::is_called(&first.ty, "Ctx") {
        return Err(Error::new_spanned(&signature.inputs, missing));
    }
    Ok((first, Argument::all(rest, WHAT)?))
}

pub(crate) fn names(arguments: &[Argument]) -> Vec<&Ident> {
    arguments.iter().map(|argument| &argument.name).collect()
}

/// The definition of a workflow, on its marker or on the type of its state.
pub(crate) struct Definition<'d> {
    pub(crate) this: TokenStream,
    pub(crate) name: String,
    pub(crate) options: &'d WorkflowOptions,
    pub(crate) arguments: &'d [Argument],
    pub(crate) output: &'d TokenStream,
    pub(crate) state: TokenStream,
    pub(crate) init: TokenStream,
    pub(crate) handlers: TokenStream,
    pub(crate) run: TokenStream,
}

impl Definition<'_> {
    pub(crate) fn expand(self) -> TokenStream {
        let Self { this, name, options, arguments, output, state, init, handlers, run } = self;
        let (order, unfinished_handlers) = (&options.order, &options.unfinished_handlers);
        let (input_type, input) = (arguments::input_type(arguments), arguments::input_names(arguments));
        let (codec, outcome) = (arguments::codec(arguments), function::outcome(output));
        let names = names(arguments);
        quote! {
            impl ::dacapo::WorkflowType for #this {
                const NAME: &'static str = #name;
                type State = #state;
                type Input = #input_type;
                #outcome
                #codec

                #[allow(clippy::let_unit_value, clippy::unused_unit)]
                fn init(input: &Self::Input) -> Self::State {
                    #init
                }

                fn handlers(ctx: &::dacapo::Ctx<Self::State>) {
                    #handlers
                }

                #[allow(clippy::let_unit_value)]
                fn play(__ctx: ::dacapo::Ctx<Self::State>, __input: Self::Input) -> ::dacapo::WorkflowFuture<Self> {
                    // An argument may bear the function's own name.
                    let __run = #run;
                    let #input = __input;
                    __run(__ctx, #(#names),*)
                }

                fn definition() -> ::dacapo::WorkflowDef {
                    ::dacapo::WorkflowDef::of::<Self>(#order, #unfinished_handlers)
                }
            }
        }
    }
}
