//! `#[workflow]` on an impl block: a workflow with state.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, ImplItem, ImplItemFn, ItemImpl, Result, Type};

use crate::activities::{plain_type, short_name};
use crate::arguments::{self, without_self};
use crate::handler::{Handler, HandlerKind, Validator};
use crate::options::WorkflowOptions;
use crate::workflow_fn::{Definition, WHAT, names, parameters};
use crate::{attributes, function};

pub(crate) fn expand(options: TokenStream, mut block: ItemImpl) -> Result<TokenStream> {
    let options = WorkflowOptions::parse(options)?;
    let this = plain_type(&block, "workflow")?;
    let marked = Marked::take(&mut block)?;
    let Some(run) = &marked.run else {
        let text = "no method here is marked `#[run]`: mark the workflow function, `async fn run(ctx: Ctx<Self>, …)`";
        return Err(Error::new_spanned(&block.self_ty, text));
    };
    let (methods, definition) = expand_run(&this, &options, run, &marked)?;
    block.items.push(ImplItem::Verbatim(methods));
    block.items.extend(marked.handlers.iter().map(|handler| ImplItem::Verbatim(handler.constant())));
    Ok(quote! {
        #block
        #definition
    })
}

/// The methods of the block that have an attribute of this macro.
#[derive(Default)]
struct Marked {
    run: Option<ImplItemFn>,
    init: Option<ImplItemFn>,
    handlers: Vec<Handler>,
    validators: Vec<Validator>,
}

impl Marked {
    /// Removes the attributes from the methods, and the workflow function from the block.
    fn take(block: &mut ItemImpl) -> Result<Self> {
        let mut marked = Self::default();
        let mut items = Vec::new();
        for item in std::mem::take(&mut block.items) {
            let ImplItem::Fn(mut method) = item else {
                items.push(item);
                continue;
            };
            if attributes::take(&mut method.attrs, "run").is_some() {
                if marked.run.is_some() {
                    return Err(Error::new_spanned(&method.sig.ident, "one method is `#[run]`: a run begins once"));
                }
                marked.run = Some(method);
                continue;
            }
            if attributes::take(&mut method.attrs, "init").is_some() {
                check_init(&method)?;
                marked.init = Some(method.clone());
            }
            for kind in [HandlerKind::Signal, HandlerKind::Query, HandlerKind::Update] {
                if let Some(attribute) = attributes::take(&mut method.attrs, kind.word()) {
                    marked.handlers.push(Handler::of(kind, &attribute, &method)?);
                }
            }
            if let Some(attribute) = attributes::take(&mut method.attrs, "validate") {
                marked.validators.push(Validator::of(&attribute, &method)?);
            }
            items.push(ImplItem::Fn(method));
        }
        block.items = items;
        marked.check_validators()?;
        Ok(marked)
    }

    fn check_validators(&self) -> Result<()> {
        for Validator { update, .. } in &self.validators {
            let fits = |handler: &&Handler| handler.kind == HandlerKind::Update && handler.method == *update;
            if self.handlers.iter().find(fits).is_none() {
                let text = format!("no method here is `#[update] fn {update}`, so there is nothing to validate");
                return Err(Error::new_spanned(update, text));
            }
        }
        Ok(())
    }
}

fn check_init(method: &ImplItemFn) -> Result<()> {
    let plain = method.sig.receiver().is_none() && method.sig.inputs.len() <= 1 && method.sig.asyncness.is_none();
    match plain {
        true => Ok(()),
        false => Err(Error::new_spanned(
            &method.sig,
            "the first state follows from the input: write `fn init(input: &I) -> Self`",
        )),
    }
}

fn expand_run(
    this: &Type,
    options: &WorkflowOptions,
    run: &ImplItemFn,
    marked: &Marked,
) -> Result<(TokenStream, TokenStream)> {
    let ImplItemFn { attrs, vis, sig, block, .. } = run;
    function::check(sig, WHAT)?;
    let output = function::output(sig, WHAT)?;
    let (ctx, mut arguments) = parameters(sig, "ctx: Ctx<Self>")?;
    let ident = &sig.ident;
    let body = format_ident!("__{}", arguments::unraw(ident), span = ident.span());
    let (outer, inner) = (attributes::outer(attrs), attributes::inner(attrs));
    let inputs = &sig.inputs;
    let (ctx_name, ctx_ty) = (arguments::plain_name(&ctx.pat, 4), &ctx.ty);
    let types: Vec<Type> = arguments.iter().map(|argument| argument.ty.clone()).collect();
    let argument_names: Vec<_> = names(&arguments).into_iter().cloned().collect();
    let methods = quote! {
        #(#outer)*
        #vis fn #ident(#ctx_name: #ctx_ty, #(#argument_names: #types),*) -> ::dacapo::WorkflowFuture<Self> {
            ::dacapo::WorkflowFuture::new(Self::#body(#ctx_name, #(#argument_names),*))
        }

        #(#inner)*
        async fn #body(#inputs) -> #output #block
    };

    for argument in &mut arguments {
        argument.ty = syn::parse2(without_self(&argument.ty, this))?;
    }
    let init = match &marked.init {
        None => quote_spanned!(this.span()=> let _ = input; <Self as ::core::default::Default>::default()),
        Some(init) if init.sig.inputs.is_empty() => {
            let init = &init.sig.ident;
            quote!(let _ = input; Self::#init())
        }
        Some(init) => {
            let init = &init.sig.ident;
            quote!(Self::#init(input))
        }
    };
    let handlers: Vec<TokenStream> =
        marked.handlers.iter().map(|handler| handler.register(&marked.validators)).collect();
    let output = without_self(output, this);
    let definition = Definition {
        this: quote!(#this),
        name: options.name.as_ref().map_or_else(|| short_name(this), |name| name.value()),
        options,
        arguments: &arguments,
        output: &output,
        state: quote!(Self),
        init,
        handlers: quote!(let _ = ctx; #(#handlers)*),
        run: quote!(Self::#ident),
    };
    Ok((methods, definition.expand()))
}
