import Bytes
import Crypto
import Synchronization
import World

/// The TLS sessions of one server context that clients may resume.
///
/// Purpose: a client that comes back names its session by a random id (its session ticket), and
/// proves that it has the secret of the session. Everything else is in this memory. So there is no
/// key whose thief could write tickets, and a new context, after a reload, knows no session.
///
/// Invariants: only verified clients have sessions, so that strangers cannot fill the memory. A
/// session is kept for twelve hours after the full handshake that it goes back to, and never beyond
/// the dates that its verification rests on. A client has a set of eight places, by the digest of
/// its key, and shares them with few others. A client with sessions in a full set displaces its own
/// oldest one. Nobody can choose a key for the set of another client, because the digest has a key.
/// The memory is bounded: 4,096 sets.
///
/// Risk: a session that was displaced costs its client a full handshake. Secrets of sessions that
/// have ended stay until their place is needed, and are worth nothing. Tests: `ResumptionTests`.
public final class ResumableSessions: Sendable {
    /// The time for which a session is kept after its full handshake.
    static let life = Duration.seconds(12 * 3600)
    static let idCount = 32
    static let sets = 4096
    static let places = 8

    /// A client that a full handshake has verified, and the interval in which the verification
    /// holds, without its end.
    struct Client: Sendable {
        let peer: PeerCertificate
        let from: Timestamp
        let until: Timestamp

        func holds(at now: Timestamp) -> Bool { from <= now && now < until }
    }

    /// A session as OpenSSL needs it to resume it.
    struct Record: Sendable {
        let id: [UInt8]
        let secret: Secret
        /// The number of the cipher suite in TLS.
        let cipher: UInt16
        let client: Client
        /// The time of the full handshake. It bounds the life if the wall clock is set back.
        let made: Instant
    }

    let time: any TimeSource
    private let randomness: any Randomness
    private let mask: Secret
    /// The sessions by set, oldest first; nil after the end.
    private let records = Mutex<[Int: [Record]]?>([:])

    public init(time: any TimeSource, randomness: any Randomness) {
        self.time = time
        self.randomness = randomness
        mask = Secret(randomness.bytes(32))
    }

    /// The number of sessions.
    var count: Int { records.withLock { $0?.values.reduce(0) { $0 + $1.count } ?? 0 } }

    /// Forgets all sessions, and keeps no further ones. Connections that began with the context of
    /// these sessions may outlive it.
    public func end() { records.withLock { $0 = nil } }

    /// Makes an id. Its beginning names the set of the client, but only for us: the network sees
    /// the id, and must not recognise a client that moves. Without a client, no session gets it.
    func makeID(for client: Client?) -> [UInt8] {
        let rest = randomness.bytes(Self.idCount - 2)
        let set = client.map { HMAC.sha256(key: mask, $0.peer.keyThumbprint).suffix(2) } ?? randomness.bytes(2)[...]
        return zip(set, masking(rest)).map { $0 ^ $1 } + rest
    }

    private func set(of id: [UInt8]) -> Int {
        let bytes = zip(id, masking(Array(id.dropFirst(2)))).map { $0 ^ $1 }
        return bytes.reduce(0) { $0 << 8 | Int($1) } % Self.sets
    }

    /// The bytes that hide the set in an id, by the rest of the id.
    private func masking(_ rest: [UInt8]) -> ArraySlice<UInt8> { HMAC.sha256(key: mask, rest).prefix(2) }

    /// Keeps a session. If its set is full, it takes the place of its client's oldest one, or else of
    /// the oldest.
    func add(_ record: Record) {
        let set = set(of: record.id)
        records.withLock { records in
            guard records != nil else { return }
            var former = records?[set] ?? []
            if former.count >= Self.places {
                let own = former.firstIndex { $0.client.peer.keyThumbprint == record.client.peer.keyThumbprint }
                former.remove(at: own ?? 0)
            }
            records?[set] = former + [record]
        }
    }

    /// Returns the session with this id, if it can be resumed now.
    func session(_ id: [UInt8]) -> Record? {
        let (set, now) = (set(of: id), (wall: time.now(), monotonic: time.instant()))
        return records.withLock { records in
            records?[set]?.first { record in
                record.id == id && record.client.holds(at: now.wall) && now.monotonic - record.made < Self.life
            }
        }
    }
}
