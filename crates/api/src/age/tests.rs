use super::*;

#[test]
fn ages_get_coarser() {
    const DAY: i64 = 86_400;
    for (seconds, shown) in [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (600, "10m"),
        (179 * 60, "179m"),
        (180 * 60, "3h"),
        (181 * 60, "3h1m"),
        (8 * 3600, "8h"),
        (47 * 3600 + 59, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3600, "2d1h"),
        (8 * DAY, "8d"),
        (729 * DAY, "729d"),
        (730 * DAY, "2y"),
        (731 * DAY, "2y1d"),
        (8 * 365 * DAY, "8y"),
    ] {
        assert_eq!(elapsed(seconds), shown);
    }
}

#[test]
fn without_a_creation_time_the_age_is_unknown() {
    assert_eq!(age("", 0), "<unknown>");
    assert_eq!(age("1970-01-01T00:00:05Z", 10), "5s");
}
