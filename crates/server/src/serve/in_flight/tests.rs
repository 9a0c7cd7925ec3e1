//! Seats and turns, without sockets.

use super::*;

fn seats(total: usize) -> Arc<Seats> {
    Arc::new(Seats::new(Bounds { reading: total, writing: total }))
}

async fn seat(seats: &Seats, class: Class, flow: &str) -> Seat {
    seats.take(true, class, flow).await.expect("a seat").expect("seats are bounded")
}

/// Starts a request that waits; returns once it is in the queue.
async fn queue(seats: &Arc<Seats>, class: Class, flow: &'static str) -> tokio::task::JoinHandle<Result<Seat, Failure>> {
    let waiting = |seats: &Seats| seats.reading.as_ref().map_or(0, |room| room.lock()[class.index()].waiting);
    let before = waiting(seats);
    let task = tokio::spawn({
        let seats = seats.clone();
        async move { seats.take(true, class, flow).await.map(|seat| seat.expect("seats are bounded")) }
    });
    while waiting(seats) == before {
        tokio::task::yield_now().await;
    }
    task
}

#[tokio::test]
async fn a_user_with_hundreds_of_requests_does_not_delay_another() {
    let seats = seats(100);
    let mut greedy = Vec::new();
    // What a user alone may have is less than what the class has.
    let take = || tokio::time::timeout(Duration::from_millis(20), seats.take(true, Class::Users, "greedy"));
    while let Ok(seat) = take().await {
        greedy.push(seat.expect("a seat"));
    }
    assert!(greedy.len() >= 40, "{}", greedy.len());
    let mut waiting = Vec::new();
    for _ in 0..QUEUE {
        waiting.push(queue(&seats, Class::Users, "greedy").await);
    }
    let refused = seats.take(true, Class::Users, "greedy").await.expect_err("its queue is full");
    assert_eq!(refused.code, 429);
    // At once, though none of the greedy user's requests has ended.
    drop(seat(&seats, Class::Users, "polite").await);
    drop(seat(&seats, Class::Nodes, "system:node:a").await);
    drop(seat(&seats, Class::System, "system:kube-scheduler").await);
    drop(seat(&seats, Class::Strangers, "192.0.2.1").await);
}

#[tokio::test]
async fn users_take_turns() {
    let seats = seats(1);
    let first = seat(&seats, Class::Users, "a").await;
    let mut greedy = VecDeque::new();
    for _ in 0..10 {
        greedy.push_back(queue(&seats, Class::Users, "a").await);
    }
    let polite = queue(&seats, Class::Users, "b").await;
    drop(first);
    let second = greedy.pop_front().expect("ten").await.expect("no panic").expect("its turn");
    assert!(!polite.is_finished());
    drop(second);
    drop(polite.await.expect("no panic").expect("before the others of the greedy user"));
    for task in greedy {
        drop(task.await.expect("no panic").expect("a turn for all"));
    }
    let room = seats.reading.as_ref().expect("bounded");
    let classes = room.lock();
    let users = &classes[Class::Users.index()];
    assert_eq!((users.seated, users.waiting, users.active, users.turns.len()), (0, 0, 0, 0));
}

#[tokio::test]
async fn a_request_that_gives_up_leaves_the_queue() {
    let seats = seats(1);
    let first = seat(&seats, Class::Users, "a").await;
    let gone = queue(&seats, Class::Users, "b").await;
    let stays = queue(&seats, Class::Users, "c").await;
    gone.abort();
    assert!(gone.await.is_err());
    drop(first);
    drop(stays.await.expect("no panic").expect("its turn"));
    let room = seats.reading.as_ref().expect("bounded");
    assert_eq!(room.lock()[Class::Users.index()].active, 0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_429_and_the_time_the_queue_takes() {
    let seats = seats(1);
    let _first = seat(&seats, Class::Users, "a").await;
    let refused = seats.take(true, Class::Users, "b").await.expect_err("no seat in time");
    assert_eq!(refused.code, 429);
    assert_eq!(seats.refused().map(|(_, count)| count).sum::<u64>(), 1);
    // Writes have seats of their own.
    assert!(seats.take(false, Class::Users, "b").await.is_ok());
}

#[tokio::test]
async fn no_class_takes_the_reserve_of_another() {
    let seats = seats(100);
    let mut taken = Vec::new();
    for flow in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        while let Ok(seat) = tokio::time::timeout(Duration::from_millis(5), seats.take(true, Class::Users, flow)).await
        {
            taken.push(seat.expect("a seat"));
        }
    }
    assert_eq!(taken.len(), 100 - 15 - 15 - 5);
    for (class, most) in [(Class::Nodes, 15), (Class::System, 15), (Class::Strangers, 5)] {
        let mut own = Vec::new();
        for flow in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            while let Ok(seat) = tokio::time::timeout(Duration::from_millis(5), seats.take(true, class, flow)).await {
                own.push(seat.expect("a seat"));
            }
        }
        assert_eq!(own.len(), most, "{class:?}");
    }
}

#[test]
fn users_are_classed_by_what_they_are() {
    #[track_caller]
    fn check(name: &str, group: &str, expected: Option<Class>) {
        let user = User { name: name.to_owned(), groups: vec![group.to_owned()], ..User::default() };
        assert_eq!(Class::of(&user), expected, "{name} {group}");
    }
    check("admin", "system:masters", None);
    check("system:anonymous", "system:unauthenticated", Some(Class::Strangers));
    check("system:node:a", "system:nodes", Some(Class::Nodes));
    // The name alone makes no Node.
    check("system:node:a", "devs", Some(Class::Users));
    check("system:kube-controller-manager", "", Some(Class::System));
    check("system:serviceaccount:kube-system:coredns", "system:serviceaccounts", Some(Class::System));
    check("system:serviceaccount:default:kube-system:x", "", Some(Class::Users));
    check("ann", "devs", Some(Class::Users));
}
