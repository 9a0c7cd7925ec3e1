use super::*;

#[tokio::test]
async fn what_is_ordered_while_an_order_waits_is_joined_with_it() {
    let (giver, taker) = orders::<&str, Vec<u32>>();
    let give = |listener: &'static str, number: u32| {
        giver.give(listener, |waits| Some([waits.unwrap_or_default(), vec![number]].concat()));
    };
    give("a", 1);
    give("b", 2);
    give("a", 3);
    assert_eq!(taker.take().await, Some(HashMap::from([("a", vec![1, 3]), ("b", vec![2])])));
    // One that is taken back is none.
    give("a", 4);
    giver.give("a", |waits| waits.filter(Vec::is_empty));
    give("b", 5);
    assert_eq!(taker.take().await, Some(HashMap::from([("b", vec![5])])));
    // What was ordered last is done before the end.
    give("a", 6);
    drop(giver);
    assert_eq!(taker.take().await, Some(HashMap::from([("a", vec![6])])));
    assert_eq!(taker.take().await, None);
}

#[tokio::test]
async fn who_waits_hears_of_an_order_and_of_the_end() {
    let (giver, taker) = orders::<u32, u32>();
    let told = tokio::spawn(async move {
        let mut sum = 0;
        while let Some(orders) = taker.take().await {
            sum += orders.values().sum::<u32>();
        }
        sum
    });
    for number in 0..100 {
        giver.give(number % 3, |waits| Some(waits.unwrap_or_default() + number));
        tokio::task::yield_now().await;
    }
    drop(giver);
    assert_eq!(told.await.expect("no panic"), 4950);
}
