//! Programs that must not compile, and the compiler's messages for them.

#[test]
fn mistakes_do_not_compile_and_say_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
