//! Handlers of a workflow with state: signals, queries, updates, and validators of updates.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{Attribute, Error, FnArg, ImplItemFn, Result, ReturnType, Type, Visibility};

use crate::arguments::{self, Argument};
use crate::function;
use crate::options::Named;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandlerKind {
    Signal,
    Query,
    Update,
}

impl HandlerKind {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Query => "query",
            Self::Update => "update",
        }
    }

    /// Returns the form of the handler's method, for error messages.
    const fn shape(self) -> &'static str {
        match self {
            Self::Signal => {
                "a signal handler is `fn(&mut self, T)`, or `async fn(ctx: Ctx<Self>, T) -> Result<(), Failure>`"
            }
            Self::Query => "a query handler is `fn(&self) -> O` or `fn(&self, I) -> O`: it only looks, and never waits",
            Self::Update => {
                "an update handler is `fn(&mut self, I) -> Result<O, Failure>`, or `async fn(ctx: Ctx<Self>, I) -> Result<O, Failure>`"
            }
        }
    }
}

/// A method that handles messages of one name.
pub(crate) struct Handler {
    pub(crate) kind: HandlerKind,
    pub(crate) method: Ident,
    vis: Visibility,
    name: String,
    awaits: bool,
    input: Option<Argument>,
    output: Option<Type>,
}

impl Handler {
    pub(crate) fn of(kind: HandlerKind, attribute: &Attribute, method: &ImplItemFn) -> Result<Self> {
        let signature = &method.sig;
        function::check(signature, "a handler")?;
        let wrong = || Error::new_spanned(signature, kind.shape());
        let awaits = signature.asyncness.is_some();
        let mut typed = arguments::typed(&signature.inputs);
        match (signature.inputs.first(), kind) {
            (Some(FnArg::Typed(ctx)), HandlerKind::Signal | HandlerKind::Update)
                if awaits && arguments::is_called(&ctx.ty, "Ctx") =>
            {
                typed.remove(0);
            }
            (Some(FnArg::Receiver(receiver)), HandlerKind::Signal | HandlerKind::Update)
                if !awaits && receiver.reference.is_some() && receiver.mutability.is_some() => {}
            (Some(FnArg::Receiver(receiver)), HandlerKind::Query)
                if !awaits && receiver.reference.is_some() && receiver.mutability.is_none() => {}
            _ => return Err(wrong()),
        }
        if let Some(extra) = typed.get(1) {
            let text = format!("a {} brings one value: put several into a struct or a tuple", kind.word());
            return Err(Error::new_spanned(extra, text));
        }
        let input = typed.first().map(|input| Argument::of(input, 0, "a handler")).transpose()?;
        let output = match &signature.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some((**ty).clone()),
        };
        let name = Named::of(attribute)?.name.map_or_else(|| arguments::unraw(&signature.ident), |name| name.value());
        Ok(Self { kind, method: signature.ident.clone(), vis: method.vis.clone(), name, awaits, input, output })
    }

    fn constant_name(&self) -> Ident {
        format_ident!("{}", arguments::unraw(&self.method).to_uppercase(), span = self.method.span())
    }

    fn input_type(&self) -> TokenStream {
        self.input.as_ref().map_or_else(
            || quote!(()),
            |input| {
                let ty = &input.ty;
                quote!(#ty)
            },
        )
    }

    fn fails(&self) -> bool {
        self.output.as_ref().is_some_and(|output| arguments::is_called(output, "Result"))
    }

    fn output_type(&self) -> TokenStream {
        match &self.output {
            None => quote!(()),
            Some(output) if self.fails() => quote!(<#output as ::dacapo::__macros::Returned>::Value),
            Some(output) => quote!(#output),
        }
    }

    /// Writes the constant with the typed name, by which callers send the message.
    pub(crate) fn constant(&self) -> TokenStream {
        let Self { vis, name, .. } = self;
        let (constant, input, output) = (self.constant_name(), self.input_type(), self.output_type());
        let ty = match self.kind {
            HandlerKind::Signal => quote!(::dacapo::Signal<#input>),
            HandlerKind::Query => quote!(::dacapo::Query<#input, #output>),
            HandlerKind::Update => quote!(::dacapo::Update<#input, #output>),
        };
        let doc = format!("The {} `{name}`.", self.kind.word());
        quote! {
            #[doc = #doc]
            #vis const #constant: #ty = <#ty>::new(#name);
        }
    }

    /// Writes the statement that registers the handler on `ctx`.
    pub(crate) fn register(&self, validators: &[Validator]) -> TokenStream {
        let (method, constant) = (&self.method, self.constant_name());
        let argument = self.input.as_ref().map(|_| quote!(input));
        let (subject, call) = match self.awaits {
            true => (quote!(ctx), quote!(Self::#method(ctx, #argument).await)),
            false => (quote!(state), quote!(Self::#method(state, #argument))),
        };
        let value = match (self.fails(), self.kind) {
            (true, _) => {
                let failure = function::failure_of(self.method.span(), quote!(error));
                quote!(match #call {
                    ::core::result::Result::Ok(value) => ::core::result::Result::Ok(value),
                    ::core::result::Result::Err(error) => ::core::result::Result::Err(#failure),
                })
            }
            (false, HandlerKind::Signal) => quote!({ let () = #call; ::core::result::Result::Ok(()) }),
            (false, _) => quote!(::core::result::Result::Ok(#call)),
        };
        let body = if self.awaits { quote!(async move { #value }) } else { value };
        let handler = quote!(|#subject, input| { let _ = &input; #body });
        let validator = self.validator(validators);
        let register = match (self.kind, self.awaits) {
            (HandlerKind::Signal, false) => quote!(signal(ctx, Self::#constant, #handler)),
            (HandlerKind::Signal, true) => quote!(signal_async(ctx, Self::#constant, #handler)),
            (HandlerKind::Query, _) => quote!(query(ctx, Self::#constant, #handler)),
            (HandlerKind::Update, false) => quote!(update(ctx, Self::#constant, #validator, #handler)),
            (HandlerKind::Update, true) => quote!(update_async(ctx, Self::#constant, #validator, #handler)),
        };
        quote!(::dacapo::__macros::#register;)
    }

    fn validator(&self, validators: &[Validator]) -> TokenStream {
        match validators.iter().find(|validator| validator.update == self.method) {
            None => quote!(|_, _| ::core::result::Result::Ok(())),
            Some(Validator { method, takes_input: true, .. }) => quote!(|state, input| Self::#method(state, input)),
            Some(Validator { method, .. }) => quote!(|state, _| Self::#method(state)),
        }
    }
}

/// A method that decides beforehand whether an update is accepted.
pub(crate) struct Validator {
    pub(crate) update: Ident,
    method: Ident,
    takes_input: bool,
}

impl Validator {
    pub(crate) fn of(attribute: &Attribute, method: &ImplItemFn) -> Result<Self> {
        let update = attribute
            .parse_args::<Ident>()
            .map_err(|_| Error::new_spanned(attribute, "say which update it validates: `#[validate(withdraw)]`"))?;
        let signature = &method.sig;
        let shape = "a validator is `fn(&self, input: &I) -> Result<(), Failure>`: it only looks";
        let looks = signature.receiver().is_some_and(|receiver| {
            receiver.reference.is_some() && receiver.mutability.is_none() && signature.asyncness.is_none()
        });
        if !looks || signature.inputs.len() > 2 {
            return Err(Error::new_spanned(signature, shape));
        }
        Ok(Self { update, method: signature.ident.clone(), takes_input: signature.inputs.len() == 2 })
    }
}
