use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::api::query::Query;

fn line(text: &str) -> String {
    format!("2026-01-01T00:00:00Z stdout F {text}\n")
}

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("fairlead-logs-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a directory");
    path
}

fn options(query: &str) -> Options {
    Options::parse(&Query::parse(query), jiff::Timestamp::now()).expect("options")
}

fn place() -> OwnedSemaphorePermit {
    Arc::new(Semaphore::new(1)).try_acquire_owned().expect("a place")
}

/// Three files with lines `0` to `8`, and what a query shows of them.
async fn check(query: &str, want: &str) {
    let directory = directory(&query.replace('=', "-"));
    let files: Vec<PathBuf> = (0..3).map(|at| directory.join(format!("{at}.log"))).collect();
    for (at, file) in files.iter().enumerate() {
        let text: String = (0..3).map(|line_at| line(&(3 * at + line_at).to_string())).collect();
        std::fs::write(file, text).expect("written");
    }
    let logs = Logs { files, ended: CancellationToken::new() };
    let body = answer(logs, options(query), place()).into_body().collect().await.expect("a log").to_bytes();
    assert_eq!(String::from_utf8_lossy(&body).replace('\n', " "), want, "{query}");
    std::fs::remove_dir_all(directory).expect("removed");
}

#[tokio::test]
async fn the_last_lines_are_found_over_several_files() {
    check("", "0 1 2 3 4 5 6 7 8 ").await;
    check("tailLines=0", "").await;
    check("tailLines=1", "8 ").await;
    check("tailLines=3", "6 7 8 ").await;
    check("tailLines=4", "5 6 7 8 ").await;
    check("tailLines=100", "0 1 2 3 4 5 6 7 8 ").await;
}

#[tokio::test]
async fn a_long_line_of_another_block_is_counted_once() {
    let directory = directory("long");
    let file = directory.join("log");
    let text = line(&"x".repeat(200_000)) + &line("last");
    std::fs::write(&file, text).expect("written");
    assert_eq!(tail::find(std::slice::from_ref(&file), 2).await, (0, 0));
    let logs = Logs { files: vec![file], ended: CancellationToken::new() };
    let body = answer(logs, options("tailLines=1"), place()).into_body().collect().await.expect("a log").to_bytes();
    assert_eq!(body, "last\n");
    std::fs::remove_dir_all(directory).expect("removed");
}

#[tokio::test]
async fn a_followed_log_goes_on_through_a_rotation_and_ends_with_the_container() {
    let directory = directory("follow");
    let path = directory.join("log");
    std::fs::write(&path, line("one")).expect("written");
    let ended = CancellationToken::new();
    let logs = Logs { files: vec![path.clone()], ended: ended.clone() };
    let mut body = answer(logs, options("follow=true"), place()).into_body();
    let mut next = async || body.frame().await.map(|frame| frame.expect("data").into_data().expect("data"));
    assert_eq!(next().await.as_deref(), Some(b"one\n".as_slice()));
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("open");
    file.write_all(line("two").as_bytes()).expect("written");
    assert_eq!(next().await.as_deref(), Some(b"two\n".as_slice()));
    file.write_all(line("three").as_bytes()).expect("written");
    std::fs::rename(&path, directory.join("log.1")).expect("renamed");
    std::fs::write(&path, line("four")).expect("written");
    let mut seen = Vec::new();
    while !seen.ends_with(b"four\n") {
        seen.extend_from_slice(&next().await.expect("more"));
    }
    assert_eq!(seen, b"three\nfour\n");
    ended.cancel();
    assert_eq!(next().await, None);
    std::fs::remove_dir_all(directory).expect("removed");
}
