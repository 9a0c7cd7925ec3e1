//! Damaged files: whatever bytes there are, reading them ends, and what is refused is refused in words.

use super::*;

/// One in four changes a byte to anything, others copy, cut or repeat pieces: what editors and bad disks do.
fn damage(text: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..bytes.len().max(1));
        let end = (at + random.usize(..12)).min(bytes.len());
        match random.u8(..4) {
            0 if !bytes.is_empty() => bytes[at] = random.u8(..),
            1 => drop(bytes.drain(at.min(end)..end)),
            2 => {
                let piece = bytes[at.min(end)..end].to_vec();
                let to = random.usize(..=bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => {
                let to = random.usize(..=bytes.len());
                let piece = random.choice([
                    &b"\n"[..],
                    b": ",
                    b"[",
                    b"{",
                    b"- ",
                    b"&a ",
                    b"*a",
                    b"!!int ",
                    b"99999999999999999999",
                    b"-1",
                    b"\t",
                ]);
                bytes.splice(to..to, piece.unwrap_or_default().iter().copied());
            }
        }
    }
    bytes
}

#[test]
fn a_damaged_file_is_read_or_refused() {
    let mut random = fastrand::Rng::with_seed(7);
    let text = format!("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n{KUBEADM}");
    let (mut read, mut refused) = (0, 0);
    for _ in 0..2000 {
        let damaged = damage(text.as_bytes(), &mut random);
        match parse_file(&String::from_utf8_lossy(&damaged)) {
            Ok((configuration, _)) => {
                let _ = settings::settings(&configuration, "n".to_owned(), false);
                read += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(read > 50 && refused > 50, "{read} read, {refused} refused");
}

#[test]
fn anything_at_all_is_read_or_refused() {
    let mut random = fastrand::Rng::with_seed(8);
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..random.usize(..200)).map(|_| random.u8(..)).collect();
        let _ = parse_file(&String::from_utf8_lossy(&bytes));
    }
    for deep in [&"[".repeat(100_000), &"{a: ".repeat(100_000), &"- ".repeat(100_000), &"a:\n ".repeat(1000)] {
        assert!(parse_file(deep).is_err());
    }
    // A few bytes that stand for very many.
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let below = format!("*a{},", level - 1).repeat(10);
        bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    assert!(parse_file(&bomb).is_err());
}
