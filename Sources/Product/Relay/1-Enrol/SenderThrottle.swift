import Log
import Synchronization
import World

/// Who sends wrong codes, by address. With each wrong code the pause grows before the sender's next one is looked at;
/// whoever sends from elsewhere is never in its way. Forgotten by a restart: what guards a code is its size.
final class SenderThrottle: Sendable {
    /// People mistype.
    static let free = 5
    static let pause = Duration.seconds(5)
    /// An address may be a whole company's.
    static let longestPause = Duration.seconds(60)
    /// So long after the last pause an address is as good as any other.
    static let memory = Duration.seconds(3600)

    private struct Record {
        var wrong = 0
        /// Nothing is taken from the sender before.
        var until: Instant
    }

    private let records: Mutex<GenerationalCache<String, Record>>

    init(most: Int = 16_384) { records = Mutex(GenerationalCache(most: most)) }

    /// Before anything is looked up. One at a time is taken from a sender that is slowed: many at once are many guesses.
    ///
    /// - Returns: until when the sender is made to wait for what is taken now, if it turns out to be wrong.
    func admit(_ address: String, at now: Instant) throws(Refusal) -> Instant? {
        let sender = Self.network(address)
        let (pause, until) = records.withLock { records -> (Duration?, Instant?) in
            guard var record = record(of: sender, in: records, at: now), record.wrong >= Self.free else {
                return (nil, nil)
            }
            guard now >= record.until else { return (record.until - now, nil) }
            record.until = now + Self.pause(after: record.wrong)
            records[sender] = record
            return (nil, record.until)
        }
        if let pause { throw .limited(retryAfter: pause) }
        return until
    }

    /// What came in one burst with others, before the sender had to wait, adds nothing to the pause that they have brought.
    ///
    /// - Parameter until: what `admit` returned for it.
    /// - Returns: how many wrong codes count.
    @discardableResult func wrong(_ address: String, admitted until: Instant?, at now: Instant) -> Int {
        let sender = Self.network(address)
        return records.withLock { records in
            var record = record(of: sender, in: records, at: now) ?? Record(until: now)
            if until != nil || now >= record.until {
                record.wrong += 1
                record.until = record.wrong < Self.free ? now : now + Self.pause(after: record.wrong)
            }
            records[sender] = record
            return record.wrong
        }
    }

    /// What was taken from the sender was right after all: it need not wait for that. What it waits for because of
    /// something else it goes on waiting for.
    func right(_ address: String, admitted until: Instant?, at now: Instant) {
        guard let until else { return }
        let sender = Self.network(address)
        records.withLock { records in
            guard var record = record(of: sender, in: records, at: now), record.until == until else { return }
            record.until = now
            records[sender] = record
        }
    }

    var count: Int { records.withLock { $0.count } }

    private func record(of sender: String, in records: GenerationalCache<String, Record>, at now: Instant) -> Record? {
        guard let record = records[sender], now < record.until + Self.memory else {
            return nil
        }
        return record
    }

    private static func pause(after wrong: Int) -> Duration {
        min(pause * (wrong - free + 1), longestPause)
    }

    /// Whom an address stands for: of IPv6, whoever has one address has 2^64 of them.
    static func network(_ address: String) -> String {
        let text = Array(address.utf8)
        guard text.contains(UInt8(ascii: ":")), !text.contains(UInt8(ascii: ".")) else { return address }
        let gap = zip(text, text.dropFirst()).map { $0 == UInt8(ascii: ":") && $1 == $0 }.firstIndex(of: true)
        func groups(_ part: ArraySlice<UInt8>) -> [String] {
            part.split(separator: UInt8(ascii: ":")).map { String(decoding: $0, as: UTF8.self) }
        }
        guard let gap else { return groups(text[...]).prefix(4).joined(separator: ":") }
        let (head, tail) = (groups(text[..<gap]), groups(text[gap...]))
        let zeros = Array(repeating: "0", count: max(0, 8 - head.count - tail.count))
        return (head + zeros + tail).prefix(4).joined(separator: ":")
    }
}

extension Relay {
    /// Does what a code is needed for. Its sender is slowed down for wrong ones.
    func taking<Answer: Sendable>(
        from sender: String, _ work: () async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        let admitted = try self.admitted(sender, by: activationThrottle)
        do throws(Refusal) {
            let answer = try await work()
            activationThrottle.right(sender, admitted: admitted, at: time.instant())
            return answer
        } catch {
            if error == .unauthenticated {
                let count = activationThrottle.wrong(sender, admitted: admitted, at: time.instant())
                if count >= SenderThrottle.free { log.notice("code.wrong", [.remote: sender, .count: count]) }
            } else {
                activationThrottle.right(sender, admitted: admitted, at: time.instant())
            }
            throw error
        }
    }

    func admitted(_ sender: String, by activationThrottle: SenderThrottle) throws(Refusal) -> Instant? {
        do throws(Refusal) {
            return try activationThrottle.admit(sender, at: time.instant())
        } catch {
            metrics.reached(.code)
            throw error
        }
    }
}
