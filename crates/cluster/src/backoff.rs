//! How long to wait before trying again: longer each time, up to a bound, and never all at the same moment.

use std::time::Duration;

use crate::Error;

/// When to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait.
    pub first: Duration,
    /// The longest wait.
    pub most: Duration,
    /// How often to try in all.
    pub tries: u32,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { first: Duration::from_millis(100), most: Duration::from_secs(10), tries: 6 }
    }
}

impl Backoff {
    /// The wait after so many tries that failed (0: none yet): doubled each time, then up to half of it left out by chance.
    pub fn wait(&self, failed: u32) -> Duration {
        let whole = self.first.saturating_mul(2u32.saturating_pow(failed)).min(self.most);
        whole.mul_f64(1.0 - fastrand::f64() / 2.0)
    }
}

/// Tries until it goes well, until an error is not worth another try, or until there were enough tries. A server that says
/// when to come back is believed, up to the longest wait.
pub async fn retry<T, F>(
    backoff: Backoff,
    again: impl Fn(&Error) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut failed = 0;
    loop {
        let error = match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if failed + 1 >= backoff.tries || !again(&error) {
            return Err(error);
        }
        let asked = match &error {
            Error::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        };
        tokio::time::sleep(backoff.wait(failed).max(asked.unwrap_or_default().min(backoff.most))).await;
        failed += 1;
    }
}
