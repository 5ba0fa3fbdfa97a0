use super::*;
use closer_contracts::record::{Claim, ClaimKey, Link, Position, StreamId};
use closer_contracts::time::Timestamp;
use proptest::prelude::*;

fn records() -> impl Strategy<Value = Vec<Record>> {
    let name = "[a-z:é]{1,20}";
    let links = proptest::collection::vec((name, 1u64..1000, any::<[u8; 32]>()), 0..4);
    let claims = proptest::collection::vec((name, any::<[u8; 32]>()), 0..3);
    let body = proptest::collection::vec(any::<u8>(), 0..300);
    let record = (0..RecordKind::ALL.len(), 0..CustodyClass::ALL.len(), name, links, claims, body).prop_map(
        |(kind, custody, id, links, claims, body)| Record {
            kind: RecordKind::ALL[kind],
            id,
            admitted_at: Timestamp::from_unix_ms(1_700_000_000_123),
            custody: CustodyClass::ALL[custody],
            links: links
                .into_iter()
                .map(|(stream, position, digest)| Link {
                    stream: StreamId::new(stream),
                    position: Position(position),
                    previous: (position > 1).then(|| Digest::from_raw(digest)),
                })
                .collect(),
            claims: claims
                .into_iter()
                .map(|(key, digest)| Claim { key: ClaimKey::new(key), digest: Digest::from_raw(digest) })
                .collect(),
            body_digest: Digest::of(&body),
            body: Some(body.into()),
        },
    );
    proptest::collection::vec(record, 0..5)
}

/// The batch of these records, with made-up cursors leading back.
fn encoded(records: &[Record]) -> (Vec<u8>, Vec<Cursor>) {
    let links = records.iter().map(|record| record.links.len()).sum::<usize>() as u64;
    let previous: Vec<Cursor> = (0..links).map(|index| Cursor(index * 7)).collect();
    let mut bytes = Vec::new();
    let draft = Draft {
        kind: BatchKind::Append,
        sequence: 12,
        epoch: Epoch(3),
        first: Cursor(100),
        watermark: 9,
        records,
        previous: &previous,
        chain: Digest::of(b"before"),
    };
    encode(&draft, &mut bytes);
    (bytes, previous)
}

/// The records as a reader gets them, or nothing if anything does not fit.
fn decoded(bytes: &[u8]) -> Option<(Vec<Record>, Vec<Cursor>)> {
    let header = decode_header(bytes)?;
    let batch = bytes.get(..header.batch_bytes())?;
    check(&header, batch, Some(Digest::of(b"before"))).ok()?;
    let (mut records, mut previous) = (Vec::new(), Vec::new());
    for frame in decode_frames(&header, batch.get(BATCH_HEADER_BYTES..)?)? {
        let body = frame.body(batch)?;
        previous.extend_from_slice(&frame.previous);
        records.push(Record { body: Some(body), ..frame.record });
    }
    Some((records, previous))
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(records in records()) {
        let (bytes, previous) = encoded(&records);
        prop_assert_eq!(bytes.len(), batch_bytes(&records));
        prop_assert_eq!(decoded(&bytes), Some((records, previous)));
    }

    #[test]
    fn no_flipped_bit_is_read_as_something_else(records in records(), at in any::<prop::sample::Index>(), bit in 0u32..8) {
        let (mut bytes, _) = encoded(&records);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert_eq!(decoded(&bytes), None);
    }

    #[test]
    fn bytes_from_anywhere_are_read_without_a_panic(
        heads in proptest::collection::vec(any::<u8>(), 0..400), records in 0u32..6, bodies_bytes in 0u32..1000,
    ) {
        let header = BatchHeader {
            kind: BatchKind::Append,
            records,
            heads_bytes: heads.len() as u32,
            bodies_bytes,
            sequence: 1,
            epoch: Epoch(1),
            first: Cursor(1),
            watermark: 0,
            chain: Digest::of(b""),
        };
        let frames = decode_frames(&header, &heads);
        prop_assert!(frames.is_none_or(|frames| frames.len() == records as usize));
        prop_assert_eq!(decode_header(&heads), None, "no checksum fits by chance");
    }
}
