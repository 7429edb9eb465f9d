//! Errors that a user can cause, side by side in `tests/golden/errors.txt`: each is caused for real. Every text names what failed,
//! why, with the value and the limit, and what to do. `UPDATE_EXPECT=1 cargo test -p dacapo --test errors` writes the file anew.

mod calls;
mod cause;
mod guide;
mod opening;
mod stuck;

use expect_test::expect_file;

use crate::cause::Page;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_that_users_can_cause_read_as_in_the_golden_file() {
    let mut page = Page::default();
    opening::store(&mut page).await;
    opening::setup(&mut page).await;
    calls::start(&mut page).await;
    calls::talk(&mut page).await;
    calls::finish(&mut page).await;
    calls::archives(&mut page).await;
    // The kit drives an engine of its own, outside any async runtime.
    let page = std::thread::spawn(move || {
        stuck::code(&mut page);
        stuck::calls(&mut page);
        page
    });
    let mut page = page.join().unwrap();
    stuck::changes(&mut page).await;
    assert!(page.errors() >= 40, "{} errors", page.errors());
    expect_file!["../golden/errors.txt"].assert_eq(&page.to_string());
}
