//! Resident bytes per key.

use crate::{
    child,
    contestant::Entrant,
    flood,
    options::Options,
    report::{Table, Verdict},
    rss,
    shape::Shape,
    stream::Stream,
};

const SUBJECTS: usize = 1_000_000;
const MAX_BYTES: f64 = 48.0;

pub(crate) fn report(options: Options) {
    println!("## Memory: resident bytes per key, 1 million distinct keys\n");
    let [ours, governors, throttlecrabs] =
        [Entrant::Ours, Entrant::Governor, Entrant::Throttlecrab].map(most_per_key);
    // It takes as long as all other measurements together.
    let limitadors = (!options.is_quick()).then(|| most_per_key(Entrant::Limitador));

    let mut table = Table::new(&["", "bytes per key", "over ours"]);
    let all = [Some(ours), Some(governors), Some(throttlecrabs), limitadors];
    for (entrant, bytes) in Entrant::ALL.into_iter().zip(all) {
        let figure = bytes.map_or_else(|| "not asked".to_owned(), |bytes| format!("{bytes:.1}"));
        let ratio = bytes.map_or_else(String::new, |bytes| format!("{:.1}x", bytes / ours));
        table.row([entrant.name().to_owned(), figure, ratio]);
    }
    println!("{table}");
    let bound = format!("at most {MAX_BYTES} resident bytes a key");
    println!("{}", Verdict::new(bound, ours <= MAX_BYTES, format!("{ours:.1}")));
    let figure = format!("{:.2}", ours / governors);
    println!("{}", Verdict::new("at most half of governor's", ours <= governors / 2.0, figure));
    flood::report();
    println!(
        "\nEach in a process of its own, as growth of its RSS; every key is live. Ours is the most"
    );
    println!("of seven processes: each has another secret, and fills its shards differently.\n");
}

fn most_per_key(entrant: Entrant) -> f64 {
    // Ours has a random hash seed per process, and so fills its shards differently.
    let processes = if entrant == Entrant::Ours { 7 } else { 1 };
    let grown = (0..processes).map(|_| child::ask(entrant.name())[0]).max();
    grown.unwrap_or_default() as f64 / SUBJECTS as f64
}

/// Returns the growth of this process by a limiter with a million live subjects.
pub(crate) fn measure(entrant: Entrant) -> usize {
    const CHUNK: usize = 10_000;
    let mut chunk = Stream::new(0..CHUNK);
    let before = rss::now();
    let limiter = entrant.build(Shape::MillionDistinct.quota(), SUBJECTS);
    for start in (0..SUBJECTS).step_by(CHUNK) {
        chunk.refill(start..start + CHUNK);
        let admitted = limiter.decide(chunk.all(), Shape::PRELOAD);
        assert_eq!(admitted, CHUNK, "{} admits newcomers", entrant.name());
    }
    rss::now() - before
}
