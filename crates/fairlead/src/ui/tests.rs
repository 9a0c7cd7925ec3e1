use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::*;

#[tokio::test]
async fn a_place_is_taken_until_the_work_is_done_even_if_nobody_waits_for_it() {
    let places = Arc::new(Semaphore::new(1));
    let place = places.clone().acquire_owned().await.unwrap();
    let (done, work) = oneshot::channel::<()>();
    // Who asked begins to wait, and goes away.
    assert!(to_the_end(place, work).now_or_never().is_none());
    assert_eq!(places.available_permits(), 0);
    done.send(()).unwrap();
    assert!(places.acquire().await.is_ok());
}

#[test]
fn what_nobody_knows_cannot_be_asked() {
    for path in ["", "nothing", "services/", "services/a", "services/a/b/c", "history/then"] {
        assert!(made_of(path).is_none(), "{path}");
    }
}

#[test]
fn the_manual_says_what_answers_are_made_of() {
    let manual = std::fs::read_to_string(fairlead_testkit::project().join("docs/security.md")).unwrap();
    let (_, table) = manual.split_once("| question | `list` of |\n|---|---|\n").expect("the table");
    let told: Vec<(&str, &str)> = table
        .lines()
        .map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "))
        .flat_map(|(questions, made)| questions.split(", ").map(move |question| (question.trim_matches('`'), made)))
        .collect();
    let resources = |path: &str| {
        let kinds = made_of(path).map(|kinds| kinds.iter().map(|kind| kind.resource).collect::<Vec<_>>());
        kinds.map_or_else(|| "nothing".to_owned(), |kinds| kinds.join(", "))
    };
    for (question, made) in &told {
        assert_eq!(resources(question), *made, "{question}");
    }
    let questions: Vec<&str> = told.iter().map(|(question, _)| *question).collect();
    let known = ["session", "services", "explain", "traffic", "nodes", "balancers", "trace", "dns", "history"];
    assert_eq!(questions, known);
    assert_eq!((resources("services/a/b"), resources("history/at")), (resources("services"), resources("history")));
}
