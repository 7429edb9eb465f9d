//! Checks that workflows and activities share, and the errors for invalid functions.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Result, ReturnType, Signature};

/// Refuses signatures that no recorded function can have.
pub(crate) fn check(signature: &Signature, what: &str) -> Result<()> {
    let generics = &signature.generics;
    if !generics.params.is_empty() {
        let text = format!("{what} has no type parameters: it is found by its name alone; write one for each type");
        return Err(Error::new_spanned(generics, text));
    }
    if let Some(word) = &signature.constness {
        return Err(Error::new_spanned(word, format!("{what} is not `const`")));
    }
    if let Some(word) = &signature.unsafety {
        return Err(Error::new_spanned(word, format!("{what} is not `unsafe`: the caller is the record")));
    }
    if let Some(word) = &signature.abi {
        return Err(Error::new_spanned(word, format!("{what} is a Rust function")));
    }
    Ok(())
}

/// Returns the type that the function returns.
pub(crate) fn output(signature: &Signature, what: &str) -> Result<TokenStream> {
    match &signature.output {
        ReturnType::Type(_, ty) => Ok(quote!(#ty)),
        ReturnType::Default => {
            let text = format!("{what} returns a result: write `-> Result<(), Failure>`");
            Err(Error::new_spanned(&signature.ident, text))
        }
    }
}

/// Writes the associated types for the return type, and the conversion of its error to a failure.
pub(crate) fn outcome(output: &TokenStream) -> TokenStream {
    let convert = failure_of(output.span(), quote_spanned!(output.span()=> error));
    // With the type's span, so that errors are shown at the type.
    quote_spanned! {output.span()=>
        type Output = <#output as ::dacapo::__macros::Returned>::Value;
        type Error = <#output as ::dacapo::__macros::Returned>::Error;

        fn failure(error: Self::Error) -> ::dacapo::Failure {
            #convert
        }
    }
}

/// Writes the conversion of an error to a failure, in whichever way its type offers.
pub(crate) fn failure_of(span: Span, error: TokenStream) -> TokenStream {
    quote_spanned! {span=> {
        #[allow(unused_imports)]
        use ::dacapo::__macros::{AnyType as _, ByError as _, ByInto as _};
        (&&::dacapo::__macros::Thrown::of(&#error)).way().failure(#error)
    } }
}
