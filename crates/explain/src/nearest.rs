//! What was almost right: names that differ by a letter or two, and Pods that differ from a selector by a label.

use std::collections::BTreeMap;

/// Names longer than this are not compared letter by letter.
const LONGEST: usize = 64;

/// Whether two names differ by a slip: case, a letter more, less or other, or two letters swapped; two slips in longer names.
pub(crate) fn is_near(one: &str, other: &str) -> bool {
    if one == other || one.is_empty() || other.is_empty() {
        return false;
    }
    if one.eq_ignore_ascii_case(other) {
        return true;
    }
    let shorter = one.chars().count().min(other.chars().count());
    let slips = match shorter {
        0..=2 => return false,
        3..=5 => 1,
        _ => 2,
    };
    distance(one, other).is_some_and(|distance| distance <= slips)
}

/// The nearest of some names, if one is near.
pub(crate) fn nearest<'a>(name: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = among.into_iter().filter(|other| is_near(name, other));
    near.min_by_key(|other| distance(name, other).unwrap_or(usize::MAX))
}

/// How many letters must be put in, taken out, changed or swapped with their neighbour. `None`: too long to tell.
fn distance(one: &str, other: &str) -> Option<usize> {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len() > LONGEST || other.len() > LONGEST {
        return None;
    }
    // Three rows of the table: two back for swaps, the one before, and the one that is filled.
    let (mut older, mut before) = (Vec::new(), (0..=other.len()).collect::<Vec<_>>());
    for (i, letter) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, against) in other.iter().enumerate() {
            let changed = before[j] + usize::from(letter != against);
            let mut best = changed.min(before[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && one[i - 1] == *against {
                let swapped: usize = older[j - 1];
                best = best.min(swapped + 1);
            }
            row.push(best);
        }
        older = std::mem::replace(&mut before, row);
    }
    before.last().copied()
}

type Labels = BTreeMap<String, String>;

/// Keys of labels that say what a Pod is.
const IDENTITY: [&str; 7] =
    ["app", "app.kubernetes.io/name", "app.kubernetes.io/instance", "k8s-app", "name", "run", "component"];

/// How one pair of a selector differs from the labels of a Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Difference {
    /// Only in upper and lower case; what the Pod has.
    Case(String, String),
    /// In a letter or two of the value; what the Pod has.
    ValueNear(String),
    /// The value stands under another key; that.
    Key(String),
    /// The key has quite another value; that.
    Value(String),
    /// There is no such key.
    Missing,
}

/// A Pod that is almost selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Miss {
    /// The pair of the selector that differs most.
    pub(crate) key: String,
    /// Its value.
    pub(crate) value: String,
    /// How.
    pub(crate) difference: Difference,
    /// How many pairs differ.
    pub(crate) differing: usize,
    /// How far away it is; less is nearer.
    pub(crate) cost: usize,
}

impl Miss {
    /// Whether it looks like a slip, and not like another Pod.
    pub(crate) fn is_slip(&self) -> bool {
        matches!(self.difference, Difference::Case(..) | Difference::ValueNear(_) | Difference::Key(_))
    }
}

/// How a Pod misses a selector, if it does so only just: by slips, or by one label of several.
pub(crate) fn miss(selector: &Labels, labels: &Labels) -> Option<Miss> {
    let differing: Vec<_> = selector
        .iter()
        .filter(|(key, value)| labels.get(*key) != Some(value))
        .map(|(key, value)| (key, value, difference(key, value, labels)))
        .collect();
    let matching = selector.len() - differing.len();
    // A Pod that says it is something else is something else, whatever labels it shares.
    if differing.iter().any(|(key, _, found)| matches!(found, Difference::Value(_)) && IDENTITY.contains(&key.as_str()))
    {
        return None;
    }
    let far = differing.iter().filter(|(.., difference)| weight(difference) > 2).count();
    if far > 1 || far == 1 && matching == 0 {
        return None;
    }
    let cost = differing.iter().map(|(.., difference)| weight(difference)).sum();
    let count = differing.len();
    let (key, value, difference) = differing.into_iter().max_by_key(|(.., difference)| weight(difference))?;
    Some(Miss { key: key.clone(), value: value.clone(), difference, differing: count, cost })
}

fn weight(difference: &Difference) -> usize {
    match difference {
        Difference::Case(..) => 1,
        Difference::ValueNear(_) | Difference::Key(_) => 2,
        Difference::Missing => 3,
        Difference::Value(_) => 4,
    }
}

fn difference(key: &str, value: &str, labels: &Labels) -> Difference {
    let same_but_case = |(has_key, has_value): &(&String, &String)| {
        has_key.eq_ignore_ascii_case(key) && has_value.eq_ignore_ascii_case(value)
    };
    if let Some((has_key, has_value)) = labels.iter().find(same_but_case) {
        return Difference::Case(has_key.clone(), has_value.clone());
    }
    let under_another = || labels.iter().find(|(has_key, has_value)| *has_value == value && means(has_key, key));
    match labels.get(key) {
        Some(has) if is_near(value, has) => Difference::ValueNear(has.clone()),
        has => match (under_another(), has) {
            (Some((other, _)), _) => Difference::Key(other.clone()),
            (None, Some(has)) => Difference::Value(has.clone()),
            (None, None) => Difference::Missing,
        },
    }
}

/// Whether one key may stand for another: a slip, the same word with another prefix, or one of the words for what a Pod is.
fn means(one: &str, other: &str) -> bool {
    let word = |key: &str| key.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    is_near(one, other) || word(one) == word(other) || IDENTITY.contains(&one) && IDENTITY.contains(&other)
}

#[cfg(test)]
mod tests;
