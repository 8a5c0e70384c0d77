import Synchronization
import World

/// A cache of the keys in DPoP proofs, so that a proof under an unknown key costs little. It holds
/// keys that belong to an active phone, and keys that were not found a moment ago. It only decides
/// in which order a proof is checked: before any proof is accepted, the relay queries the store for
/// the phone.
final class PhoneKeyCache: Sendable {
    enum Answer: Equatable {
        case known
        /// The key was not found a moment ago.
        case unknown
        case unsure
    }

    /// The time for which a key that was not found is refused without a query. The time is short,
    /// because another relay may have bound the key meanwhile.
    static let unknownLife = Duration.seconds(2)

    private struct State {
        var known: GenerationalCache<[UInt8], Bool>
        var unknown: GenerationalCache<[UInt8], Instant>
    }

    private let state: Mutex<State>

    /// - Parameter most: the most keys of each kind.
    init(most: Int = 65_536) {
        state = Mutex(State(known: GenerationalCache(most: most), unknown: GenerationalCache(most: most)))
    }

    func answer(to key: [UInt8], at now: Instant) -> Answer {
        state.withLock { state in
            if state.known[key] == true { return .known }
            if let until = state.unknown[key], now < until { return .unknown }
            return .unsure
        }
    }

    func remember(_ key: [UInt8], isKnown: Bool, at now: Instant) {
        state.withLock { state in
            state.known[key] = isKnown ? true : nil
            state.unknown[key] = isKnown ? nil : now + Self.unknownLife
        }
    }

    /// Removes a key from the unknown ones, because it was bound here.
    func forget(_ key: [UInt8]) { state.withLock { $0.unknown[key] = nil } }

    var count: Int { state.withLock { $0.known.count + $0.unknown.count } }
}

/// The budget of each sender for work that costs a query or a signature before the sender is known.
/// A sender has 100 at once, and 10 more each second. A proof that belongs to a phone is given back.
final class SenderBudget: Sendable {
    static let atOnce = 100
    static let perSecond = 10

    private struct Record {
        var left: Int
        var filledAt: Instant
    }

    private let records: Mutex<GenerationalCache<String, Record>>

    init(most: Int = 16_384) { records = Mutex(GenerationalCache(most: most)) }

    /// Takes one from the budget. Returns false if the sender has none left.
    func take(_ address: String, at now: Instant) -> Bool {
        let sender = SenderThrottle.network(address)
        return records.withLock { records in
            var record = records[sender] ?? Record(left: Self.atOnce, filledAt: now)
            let filled = Int(clamping: (now - record.filledAt).wholeMilliseconds) / (1000 / Self.perSecond)
            if filled > 0 {
                record.left = min(Self.atOnce, record.left + min(filled, Self.atOnce))
                // The rest of the interval counts towards the next one.
                let interval = Duration.milliseconds(1000 / Self.perSecond)
                record.filledAt = filled >= Self.atOnce ? now : record.filledAt + interval * filled
            }
            let isLeft = record.left > 0
            if isLeft { record.left -= 1 }
            records[sender] = record
            return isLeft
        }
    }

    func giveBack(_ address: String) {
        let sender = SenderThrottle.network(address)
        records.withLock { records in
            guard var record = records[sender] else { return }
            record.left = min(Self.atOnce, record.left + 1)
            records[sender] = record
        }
    }
}
