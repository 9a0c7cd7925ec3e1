use super::*;
use fairlead_plan::{Change, Planner};

fn pool(weights: &[u8], affinity: Option<u32>) -> Arc<Pool> {
    let endpoint = |(at, weight): (usize, &u8)| Endpoint {
        ip: IpAddr::from([10, 0, 0, at as u8]),
        port: 80,
        local: false,
        weight: *weight,
        ready: true,
        serving: true,
        terminating: false,
    };
    let endpoints = weights.iter().enumerate().map(endpoint).filter(|endpoint| endpoint.weight > 0).collect();
    Arc::new(Pool { key: key(), endpoints, affinity })
}

fn key() -> PoolKey {
    let mut planner = Planner::default();
    let mut dice = fairlead_plan::random::Dice::new(7);
    while planner.plan().pools().next().is_none() {
        planner.apply([fairlead_plan::random::change(&mut dice)] as [Change; 1]);
    }
    let mut keys: Vec<PoolKey> = planner.plan().pools().map(|pool| pool.key.clone()).collect();
    keys.sort();
    keys.swap_remove(0)
}

fn last(at: SocketAddr) -> u8 {
    match at.ip() {
        IpAddr::V4(ip) => ip.octets()[3],
        IpAddr::V6(_) => panic!("{at} is not of these tests"),
    }
}

fn client(number: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, number])
}

/// Where clients 0, 1, 2 ... go.
fn check(weights: &[u8], failed: &[u8], expected: &[u8]) {
    let mut balancer = Balancer::default();
    let pool = pool(weights, None);
    balancer.set(&pool);
    let failed: Vec<SocketAddr> = failed.iter().map(|at| SocketAddr::new([10, 0, 0, *at].into(), 80)).collect();
    let picked =
        (0..expected.len() as u8).filter_map(|at| balancer.pick(&pool.key, client(at), &failed, Duration::ZERO));
    assert_eq!(picked.map(last).collect::<Vec<_>>(), expected, "{weights:?} without {failed:?}");
}

#[test]
fn endpoints_take_turns_by_weight() {
    check(&[1, 1, 1], &[], &[0, 1, 2, 0, 1, 2]);
    check(&[3, 1], &[], &[0, 0, 1, 0, 0, 0, 1, 0]);
    check(&[1, 1, 1], &[1], &[0, 2, 0, 2]);
}

#[test]
fn when_nobody_is_left_nobody_is_picked() {
    let mut balancer = Balancer::default();
    let pool = pool(&[1], None);
    assert_eq!(balancer.pick(&pool.key, client(0), &[], Duration::ZERO), None);
    balancer.set(&pool);
    let only = balancer.pick(&pool.key, client(0), &[], Duration::ZERO).expect("there is one");
    assert_eq!(balancer.pick(&pool.key, client(0), &[only], Duration::ZERO), None);
}

#[test]
fn a_client_stays_until_its_time_is_over_or_its_endpoint_is() {
    let mut balancer = Balancer::default();
    let stays = pool(&[1, 1, 1], Some(10));
    balancer.set(&stays);
    let pick = |balancer: &mut Balancer, seconds| {
        let now = Duration::from_secs_f32(seconds);
        balancer.pick(&stays.key, client(1), &[], now).map(last)
    };
    let first = pick(&mut balancer, 0.9);
    assert!(first.is_some());
    // Each new connection counts anew.
    assert_eq!([10.8, 20.7].map(|now| pick(&mut balancer, now)), [first, first]);
    let gone = first.expect("it was just there");
    let weights = [0, 1, 2].map(|at| u8::from(at != gone));
    balancer.set(&pool(&weights, Some(10)));
    assert!(pick(&mut balancer, 21.0).is_some_and(|now| now != gone));
}

/// Where 20 clients that stay go when they come in their order at a time.
fn newcomers(balancer: &mut Balancer, pool: &Arc<Pool>, now: u64) -> Vec<u8> {
    let now = Duration::from_secs(now);
    (0..20).filter_map(|at| balancer.pick(&pool.key, client(at), &[], now)).map(last).collect()
}

#[test]
fn clients_whose_time_is_over_and_who_come_in_the_same_order_do_not_all_go_where_they_were() {
    let mut balancer = Balancer::default();
    let stays = pool(&[1, 1, 1, 1], Some(10));
    balancer.set(&stays);
    let first = newcomers(&mut balancer, &stays, 0);
    assert_eq!(first, newcomers(&mut balancer, &stays, 9));
    let then = newcomers(&mut balancer, &stays, 100);
    let same = first.iter().zip(&then).filter(|(first, then)| first == then).count();
    assert!((1..15).contains(&same), "{first:?} {then:?}");
}

#[test]
fn endpoints_get_as_many_clients_that_stay_as_their_weight_says() {
    let mut balancer = Balancer::default();
    let stays = pool(&[1, 2, 3], Some(10));
    balancer.set(&stays);
    let mut counts = [0_i32; 3];
    for round in 0..300 {
        newcomers(&mut balancer, &stays, 100 * round).iter().for_each(|at| counts[usize::from(*at)] += 1);
    }
    for (count, weight) in counts.iter().zip(1..) {
        assert!((count - 1000 * weight).abs() < 150, "{counts:?}");
    }
}
