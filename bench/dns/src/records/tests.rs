use super::*;

#[test]
fn of_a_hundred_questions_35_miss_and_5_are_for_srv() {
    let questions = questions(1000).expect("names");
    let share = |count: usize| count * 100 / questions.len();
    let of_type = |rtype: u16| {
        let asks = |question: &&Question| question.rcode == 0 && question.bytes.ends_with(&[0, rtype as u8, 0, 1]);
        share(questions.iter().filter(asks).count())
    };
    let near = |value: usize, expected: usize| assert!(value.abs_diff(expected) <= 2, "{value} for {expected}");
    near(share(questions.iter().filter(|question| question.rcode == 3).count()), 35);
    near(of_type(A), 30);
    near(of_type(AAAA), 30);
    near(of_type(SRV), 5);
}

#[test]
fn both_forms_have_the_same_addresses() {
    let (zone, manifests) = (zone(300), manifests(300));
    for service in [0, 1, 299] {
        let (v4, v6) = (address(service).to_string(), address6(service).to_string());
        assert!(zone.contains(&format!("{} 30 A {v4}\n", name(service))), "{service}");
        assert!(zone.contains(&format!("{} 30 AAAA {v6}\n", name(service))), "{service}");
        assert!(manifests.contains(&format!(r#""clusterIPs":["{v4}","{v6}"]"#)), "{service}");
    }
    assert_eq!(manifests.matches("---").count(), 300 + NAMESPACES);
}
