//! When is it too late? A time-out that may be put off at every byte: what puts it off only writes down the new time, and the
//! timer looks at that when it fires.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// A point in time that moves.
#[derive(Debug)]
pub struct Deadline {
    at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Deadline {
    /// So long from now.
    pub fn after(time: Duration) -> Deadline {
        let at = later(time);
        Deadline { at, timer: Box::pin(sleep_until(at)) }
    }

    /// From now on it is so long from now.
    pub fn put_off(&mut self, time: Duration) {
        self.at = later(time);
        // An earlier time cannot wait until the timer fires for the later one.
        if self.at < self.timer.deadline() {
            self.timer.as_mut().reset(self.at);
        }
    }

    /// Whether it has passed.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            if self.at <= self.timer.deadline() {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(self.at);
        }
    }
}

/// The longest any time-out can be: what is further away than this does not come.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

fn later(time: Duration) -> Instant {
    Instant::now() + time.min(LONGEST)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_fires_at_the_last_time_it_was_put_off_to() {
        let seconds = Duration::from_secs;
        let begin = Instant::now();
        let mut deadline = Deadline::after(seconds(10));
        tokio::time::timeout(seconds(8), poll_fn(|cx| deadline.poll(cx))).await.unwrap_err();
        deadline.put_off(seconds(10));
        poll_fn(|cx| deadline.poll(cx)).await;
        assert_eq!(begin.elapsed().as_secs(), 18);
        let mut deadline = Deadline::after(seconds(10));
        deadline.put_off(seconds(1));
        poll_fn(|cx| deadline.poll(cx)).await;
        assert_eq!(begin.elapsed().as_secs(), 19);
    }
}
