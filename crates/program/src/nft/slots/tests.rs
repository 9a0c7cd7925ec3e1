use super::*;

fn endpoints(weights: &[u8]) -> Vec<Endpoint> {
    let endpoint = |(at, weight): (usize, &u8)| Endpoint {
        ip: IpAddr::from([10, 0, (at >> 8) as u8, at as u8]),
        port: 80,
        local: false,
        weight: *weight,
        ready: true,
        serving: true,
        terminating: false,
    };
    weights.iter().enumerate().map(endpoint).filter(|endpoint| endpoint.weight > 0).collect()
}

/// Goes from some weights to others and says how many slots changed.
fn check(from: &[u8], to: &[u8], expected_slots: usize, expected_changes: usize) {
    let mut slots = Vec::new();
    assign(&mut slots, &endpoints(from));
    let before = slots.clone();
    let changes = assign(&mut slots, &endpoints(to));
    assert_eq!((slots.len(), changes.len()), (expected_slots, expected_changes), "{from:?} to {to:?}");
    let mut replayed: Vec<Option<Place>> = before.into_iter().map(Some).collect();
    for (at, old, new) in changes {
        let at = at as usize;
        replayed.resize(replayed.len().max(at + 1), None);
        assert_eq!(replayed[at], old, "{from:?} to {to:?}");
        replayed[at] = new;
    }
    replayed.retain(Option::is_some);
    assert_eq!(replayed, slots.iter().copied().map(Some).collect::<Vec<_>>());
    let mut counts: HashMap<Place, u32> = HashMap::new();
    slots.iter().for_each(|place| *counts.entry(*place).or_default() += 1);
    assert_eq!(counts, shares(&endpoints(to)));
}

#[test]
fn an_endpoint_that_goes_costs_two_slots_and_one_that_comes_costs_one() {
    check(&[1, 1, 1, 1], &[0, 1, 1, 1], 3, 2);
    check(&[1, 1, 1, 1], &[1, 1, 1, 0], 3, 1);
    check(&[1, 1, 1, 1], &[1, 1, 1, 1, 1], 5, 1);
    check(&[1, 1, 1, 1], &[1, 0, 1, 1, 1], 4, 1);
    check(&[1, 1], &[], 0, 2);
    check(&[], &[1, 1], 2, 2);
}

#[test]
fn weights_are_slots_and_no_more_than_needed() {
    check(&[1, 1], &[100, 100], 2, 0);
    check(&[1, 1], &[1, 3], 4, 2);
    check(&[2, 4, 6], &[2, 4, 6], 6, 0);
}

#[test]
fn too_many_slots_are_fewer_but_each_endpoint_keeps_one() {
    let mut weights = vec![100; 1000];
    weights[0] = 1;
    let shares = shares(&endpoints(&weights));
    assert_eq!(shares.len(), 1000);
    assert!(shares.values().all(|share| *share >= 1));
    let total: u32 = shares.values().sum();
    assert!(total <= MAX_SLOTS && total > MAX_SLOTS * 9 / 10, "{total}");
}
