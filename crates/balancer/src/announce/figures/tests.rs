use super::*;

#[test]
fn what_an_announcer_did_is_told() {
    let figures = Figures::default();
    figures.beats.add(7);
    figures.failures.add(1);
    figures.takeovers.add(2);
    figures.others.set(3);
    let here = [("192.0.2.1", Here::Held), ("192.0.2.2", Here::Held), ("192.0.2.3", Here::Taken([2; 6]))];
    let here = here.map(|(address, state)| (address.parse().expect("an address"), state)).into();
    let samples = figures.samples(&Owners { here, sighted: true, ..Owners::default() });
    let told: Vec<(&str, u64)> = samples.iter().map(|sample| (sample.name, sample.value)).collect();
    let expected = [
        ("announcer_guarded", 1),
        ("announcer_addresses", 2),
        ("announcer_addresses_taken", 1),
        ("announcer_heartbeats", 7),
        ("announcer_heartbeats", 1),
        ("announcer_takeovers", 2),
        ("announcer_others", 3),
        ("announcer_sighted", 1),
    ];
    assert_eq!(told, expected);
}
