import Log
import Synchronization
import World

/// The throttle for senders of wrong codes, by network address. After a few wrong codes, the pause
/// before the sender's next code grows with each wrong one. Senders at other addresses are never
/// delayed. A restart forgets the throttle; a code is protected by its length.
final class SenderThrottle: Sendable {
    /// The number of wrong codes at which pauses begin. It is not smaller because people mistype.
    static let free = 5
    static let pause = Duration.seconds(5)
    /// The longest pause. It is short, because a whole company may share an address.
    static let longestPause = Duration.seconds(60)
    /// The time for which an address is remembered after its last pause.
    static let memory = Duration.seconds(3600)

    private struct Record {
        var wrong = 0
        /// The end of the sender's pause.
        var until: Instant
    }

    private let records: Mutex<GenerationalCache<String, Record>>

    init(most: Int = 16_384) { records = Mutex(GenerationalCache(most: most)) }

    /// Admits a request, or throws `limited`. It is called before any query. A throttled sender has
    /// one request at a time, because many at once would be many guesses. So an admitted request
    /// starts the next pause at once, in case its code is wrong.
    ///
    /// - Returns: the end of the pause that this request has already started for its sender; nil if
    ///   the sender is not throttled.
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

    /// Records a wrong code. Codes of one burst, sent before the pause began, do not make the pause
    /// longer.
    ///
    /// - Parameter until: the value that `admit` returned for the request.
    /// - Returns: the number of wrong codes that count.
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

    /// Ends the pause that a request started, because its code was right. A pause that another
    /// request started stays.
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

    /// The network that counts as one sender: for IPv6 the /64, because one host usually has a
    /// whole /64.
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
    /// Runs work that needs an activation code. A wrong code, which causes `unauthenticated`,
    /// throttles its sender.
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
