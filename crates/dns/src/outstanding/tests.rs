use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::*;

fn reply() -> Answer {
    Ok(Arc::new(Reply { plugin: "forward", ..Reply::default() }))
}

#[tokio::test]
async fn equal_questions_share_an_exchange_and_others_do_not() {
    let outstanding: Arc<Outstanding> = Arc::default();
    let (begun, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let join = |ask: &Ask| {
        let (begun, go) = (begun.clone(), go.clone());
        let exchange = async move {
            go.notified().await;
            reply()
        };
        outstanding.join(ask, || {
            begun.fetch_add(1, Ordering::SeqCst);
            exchange.boxed()
        })
    };
    let ask = Ask::sample("one.example.", 1);
    let waiting = [join(&ask), join(&Ask::sample("ONE.example.", 1)), join(&ask.clone())];
    assert_eq!(begun.load(Ordering::SeqCst), 1);
    let others = [
        join(&Ask::sample("two.example.", 1)),
        join(&Ask::sample("one.example.", 28)),
        join(&Ask { unchecked: true, ..ask.clone() }),
        join(&Ask { transport: Transport::Tcp, ..ask.clone() }),
    ];
    assert_eq!(begun.load(Ordering::SeqCst), 5);
    // The client that began the exchange may leave: another goes on with it.
    let [first, second, third] = waiting;
    drop(first);
    go.notify_one();
    assert!(second.await.is_ok() && third.await.is_ok());
    drop(others);
    assert!(outstanding.exchanges().is_empty(), "ended and abandoned exchanges are forgotten");
    assert!(join(&ask).now_or_never().is_none(), "an ended exchange is not an answer to later questions");
    assert_eq!(begun.load(Ordering::SeqCst), 6);
}
