//! Errors that a user can cause, side by side in `tests/golden/errors.txt`: each is caused for real. Every text names what failed,
//! why, with the value and the limit, and what to do. `UPDATE_EXPECT=1 cargo test -p dacapo --test errors` writes the file anew. Errors of a
//! cluster are in `tests/golden/errors-cluster.txt`, which the same command writes with `--features temporal`.

mod calls;
mod cause;
#[cfg(feature = "temporal")]
mod cluster;
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

#[cfg(feature = "temporal")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_a_cluster_read_as_in_their_golden_file() {
    let mut page = Page::default();
    cluster::urls(&mut page).await;
    cluster::connections(&mut page).await;
    let page = tokio::task::spawn_blocking(move || {
        cluster::histories(&mut page);
        page
    });
    expect_file!["../golden/errors-cluster.txt"].assert_eq(&page.await.unwrap().to_string());
}

/// Not in the golden file, which builds with the feature share.
#[cfg(not(feature = "temporal"))]
#[tokio::test]
async fn cluster_in_a_build_without_the_feature_is_refused_with_the_name_of_the_feature() {
    let error = dacapo::Dacapo::open("temporal://localhost/shop").await.map(drop).unwrap_err().to_string();
    let expected = "\"temporal://localhost/shop\" cannot be opened: temporal is not part of this build: enable the feature `temporal` of \
                    the crate. Open `memory:`, ";
    assert!(error.starts_with(expected), "{error}");
}
