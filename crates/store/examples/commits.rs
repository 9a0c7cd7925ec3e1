//! How fast the embedded store is here: durable commits with 1 and 64 clients, what a bare sync costs, and how long opening
//! takes. Run with `cargo run --release -p fairlead-store --example commits`.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_store::{Backend, Draft, Embedded, Error, Txn, Write};

/// About a Service's size.
const OBJECT_BYTES: usize = 1024;
const OBJECTS: usize = 20_000;
const TIME: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    println!("append and fdatasync    {:>8.0} /s", syncs(dir.path())?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let data = dir.path().join("data");
    for clients in [1, 64] {
        let store = Arc::new(Embedded::open(&data)?);
        let (rate, slowest) = runtime.block_on(commits(&store, clients, TIME))?;
        println!("{clients:>2} clients, commits      {rate:>8.0} /s, slowest {slowest:?}");
    }
    let data = dir.path().join("many");
    let store = Arc::new(Embedded::open(&data)?);
    runtime.block_on(fill(&store))?;
    drop(store);
    for what in ["clean", "after a kill"] {
        let begin = Instant::now();
        let store = Embedded::open(&data)?;
        println!("open {OBJECTS} objects, {what}: {:?}", begin.elapsed());
        runtime.block_on(put(&store, "/registry/pods/one/more"))?;
        // A copy taken while it is open is what a kill leaves behind.
        let killed = dir.path().join(what);
        std::fs::create_dir(&killed)?;
        std::fs::copy(data.join("store.redb"), killed.join("store.redb"))?;
        println!("file: {} MiB", std::fs::metadata(data.join("store.redb"))?.len() >> 20);
        drop(store);
        std::fs::remove_dir_all(&data)?;
        std::fs::rename(&killed, &data)?;
    }
    Ok(())
}

fn syncs(dir: &Path) -> std::io::Result<f64> {
    let file = File::create(dir.join("floor"))?;
    file.write_all_at(&vec![0; 16 << 20], 0)?;
    file.sync_all()?;
    let begin = Instant::now();
    let mut count = 0;
    while begin.elapsed() < TIME / 2 {
        file.write_all_at(&[7; OBJECT_BYTES], (count * OBJECT_BYTES % (16 << 20)) as u64)?;
        file.sync_data()?;
        count += 1;
    }
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}

async fn commits(
    store: &Arc<Embedded>,
    clients: usize,
    time: Duration,
) -> Result<(f64, Duration), Box<dyn std::error::Error>> {
    let begin = Instant::now();
    let clients: Vec<_> = (0..clients)
        .map(|client| {
            let store = store.clone();
            tokio::spawn(async move {
                let (mut count, mut slowest) = (0, Duration::ZERO);
                while begin.elapsed() < time {
                    let one = Instant::now();
                    put(&store, &format!("/registry/pods/ns/{client}-{}", count % 100)).await?;
                    slowest = slowest.max(one.elapsed());
                    count += 1;
                }
                Ok::<_, Error>((count, slowest))
            })
        })
        .collect();
    let (mut count, mut slowest) = (0, Duration::ZERO);
    for client in clients {
        let (one, slow) = client.await??;
        count += one;
        slowest = slowest.max(slow);
    }
    Ok((f64::from(count) / begin.elapsed().as_secs_f64(), slowest))
}

async fn fill(store: &Arc<Embedded>) -> Result<(), Error> {
    for part in 0..OBJECTS / 100 {
        let writes = (0..100).map(|n| Write::Put(format!("/registry/pods/ns/{part}-{n}").into(), draft())).collect();
        store.commit(Txn { guards: Vec::new(), writes }).await?;
    }
    Ok(())
}

async fn put(store: &Embedded, key: &str) -> Result<(), Error> {
    store.commit(Txn { guards: Vec::new(), writes: vec![Write::Put(key.into(), draft())] }).await.map(drop)
}

fn draft() -> Draft {
    let text = "x".repeat(OBJECT_BYTES);
    let json = format!("{{\"metadata\":{{\"name\":\"x\"}},\"text\":\"{text}\"}}");
    Draft { json: json.into(), gap: "{\"metadata\":{".len() }
}
