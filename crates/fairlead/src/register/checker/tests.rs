use super::*;

const SHORT: Duration = Duration::from_millis(200);

async fn looked(command: &str, timeout: Duration) -> Outcome {
    look(&Check::Command(command.to_owned()), timeout).await
}

#[tokio::test]
async fn a_command_that_ends_well_in_time_is_a_success() {
    let long = Duration::from_secs(20);
    assert_eq!(looked("test 1 = 1", long).await, Outcome::Success);
    let failed = looked("exit 3", long).await;
    assert_eq!(failed, Outcome::Failure("\"exit 3\": exit status: 3".to_owned()));
    let late = looked("sleep 1000", SHORT).await;
    assert_eq!(late, Outcome::Failure("\"sleep 1000\" timed out after 200ms".to_owned()));
}

#[tokio::test]
async fn what_a_late_command_has_started_is_ended() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("pid");
    let command = format!("sleep 1000 & echo $! > {}; wait", file.display());
    assert!(!looked(&command, Duration::from_secs(1)).await.is_success());
    let pid = std::fs::read_to_string(file).expect("it was started");
    let alive = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.contains("(sleep)") && !stat.contains(") Z ")
    };
    for _ in 0..200 {
        if !alive() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{pid} still runs");
}
