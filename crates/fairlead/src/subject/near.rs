//! Which names are nearly the one that was typed?

use fairlead_cluster::Resource;

/// So many are offered at most.
const OFFERED: usize = 3;

/// The kinds whose names are nearest, as people write them: `services (svc)`.
pub(super) fn nearest(word: &str, known: &[Resource]) -> Vec<String> {
    let mut near: Vec<(usize, &Resource)> =
        known.iter().filter_map(|resource| Some((distance_to(word, resource)?, resource))).collect();
    near.sort_by_key(|(distance, _)| *distance);
    let best = near.first().map_or(0, |(distance, _)| *distance);
    near.retain(|(distance, _)| *distance <= best + 1);
    near.dedup_by(|a, b| a.1.name == b.1.name);
    near.into_iter().take(OFFERED).map(|(_, resource)| shown(resource)).collect()
}

/// The name that is nearly this one, if there is one.
pub(crate) fn similar<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().filter_map(|name| Some((distance_within(word, name)?, name)));
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

fn shown(resource: &Resource) -> String {
    match resource.short_names.first() {
        Some(short) => format!("{} ({short})", resource.name),
        None => resource.name.clone(),
    }
}

/// How far the nearest of its names is, if it is near enough to be meant.
fn distance_to(word: &str, resource: &Resource) -> Option<usize> {
    let names = [&resource.name, &resource.singular].into_iter().chain(&resource.short_names);
    names.filter_map(|name| distance_within(word, name)).min()
}

/// How far a name is, if it is near enough to be meant.
fn distance_within(word: &str, name: &str) -> Option<usize> {
    let allowed = (name.chars().count().max(word.chars().count()) / 3).max(1);
    let begins = word.len() >= 2 && name.starts_with(word);
    let distance = if begins { 1 } else { distance(word, name) };
    (distance <= allowed).then_some(distance)
}

/// How many letters are to be added, left out, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut line = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(line[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            line.push(best);
        }
        before = std::mem::replace(&mut last, line);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distance_counts_letters_and_swaps() {
        for (a, b, expected) in [("", "", 0), ("svc", "svc", 0), ("svc", "scv", 1), ("pods", "pod", 1), ("a", "xyz", 3)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
