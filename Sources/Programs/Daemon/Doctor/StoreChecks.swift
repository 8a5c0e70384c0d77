import Domain
import Glibc
import Relay
import Storage
import World

/// The checks of the store: its latency and clock, the relays that use it, and what waits in it.
struct StoreChecks: Sendable {
    let settings: Settings
    let facts: HostFacts

    var all: [Check] {
        var check = Check("store") { examine() }
        check.limit = .seconds(20)
        return [check]
    }

    private func examine() -> [Finding] {
        let store: Store
        do throws(Failure) {
            store = try settings.openStore(time: facts.time)
        } catch {
            return [Finding("store", .failure, error.message, remedy: error.next)]
        }
        defer { store.close() }
        var findings = [
            Finding("store", .ok, "\((try? settings.store()).map { "\($0)" } ?? "") answers"),
            Self.schema(SchemaState(version: store.schemaVersion)),
        ]
        do throws(StoreFailure) {
            let before = try store.runBlocking(StoreExamination.relays)
            let since = facts.time.instant()
            findings += try clocks(store)
            findings.append(try reads(store))
            findings.append(commits(store))
            findings += try work(store)
            findings += try directories(store)
            findings.append(try relays(store, before, since))
        } catch {
            let failure = Failure(store: error)
            findings.append(Finding("store.reads", .failure, failure.message, remedy: failure.next))
        }
        return findings
    }

    /// Judges the version of the tables.
    private static func schema(_ schema: SchemaState) -> Finding {
        let measured = "the tables have version \(schema.version), and this program knows \(schema.known)"
        if schema.isUnfinished {
            return Finding(
                "store.schema", .warning, measured,
                remedy: "Finish the update when all relays run the new version: twoefay --config FILE migrate")
        }
        if schema.version > schema.known {
            return Finding(
                "store.schema", .warning, measured,
                remedy: "Install the version that made the tables here, too; this one works with them for now.")
        }
        return Finding("store.schema", .ok, measured)
    }

    // MARK: Latency

    private static let reads = 20
    private static let commits = 5

    private func reads(_ store: Store) throws(StoreFailure) -> Finding {
        var times: [Duration] = []
        for _ in 0..<Self.reads {
            let begun = facts.time.instant()
            _ = try store.runBlocking(AuditTrail.newest(1))
            times.append(facts.time.instant() - begun)
        }
        return Self.latency("store.reads", times, slow: .milliseconds(20), slowest: .milliseconds(250))
    }

    /// Commits a change that leaves nothing behind. An account that may only read is no fault of the
    /// store.
    private func commits(_ store: Store) -> Finding {
        var times: [Duration] = []
        do throws(StoreFailure) {
            for _ in 0..<Self.commits {
                let begun = facts.time.instant()
                _ = try store.runBlocking(StoreExamination.commit)
                times.append(facts.time.instant() - begun)
            }
        } catch {
            return Finding(
                "store.commits", .warning, "nothing can be committed: \(Failure(store: error).message)",
                remedy: "If the account of 'storage' may only read, that is right; relays need one that writes.")
        }
        return Self.latency("store.commits", times, slow: .milliseconds(50), slowest: .milliseconds(500))
    }

    /// Judges the times of queries.
    static func latency(_ name: String, _ times: [Duration], slow: Duration, slowest: Duration) -> Finding {
        let sorted = times.sorted()
        guard let longest = sorted.last else { return Finding(name, .skipped, "nothing was measured") }
        let median = sorted[sorted.count / 2]
        let measured = "\(sorted.count) took \(text(median)) in the middle, \(text(longest)) at most"
        if median > slow || longest > slowest {
            return Finding(
                name, .warning, measured,
                remedy: "A login needs several. Look at the disk and the load of the store, and at the network to it.")
        }
        return Finding(name, .ok, measured)
    }

    private static func text(_ duration: Duration) -> String {
        let microseconds = duration.wholeNanoseconds / 1000
        let tenths = microseconds / 100
        return microseconds < 1000 ? "\(microseconds) µs" : "\(tenths / 10).\(tenths % 10) ms"
    }

    // MARK: Clocks

    private func clocks(_ store: Store) throws(StoreFailure) -> [Finding] {
        var findings: [Finding] = []
        let begun = facts.time.now()
        if let clock = try store.runBlocking(StoreExamination.clock) {
            findings.append(
                ClockDifference.finding("clock.store", "the store's", clock, between: begun, facts.time.now()))
        }
        if let newest = try store.runBlocking(AuditTrail.newest(1)).first?.at, newest > facts.time.now() + .seconds(5) {
            findings.append(
                Finding(
                    "clock.audit", .warning, "the newest row of the audit is from \(newest.rfc3339), in the future",
                    remedy: "The clock of a relay's machine is ahead, or this one is behind: run chrony on both."))
        }
        return findings
    }

    // MARK: Work and relays

    private func work(_ store: Store) throws(StoreFailure) -> [Finding] {
        let now = facts.time.now()
        let status = try store.runBlocking(StoreStatus.query)
        var findings: [Finding] = []
        let oldest = status.waiting.map(\.oldestDue).min()
        if let oldest, oldest < now - .seconds(300) {
            findings.append(
                Finding(
                    "outbox", .warning, "an entry is due since \(oldest.rfc3339)",
                    remedy: "No relay works, or the other end does not answer: twoefay outbox list."))
        } else if status.dead > 0 {
            findings.append(
                Finding(
                    "outbox", .warning, "\(status.dead) dead letters",
                    remedy: "To see them: twoefay outbox list --dead."))
        } else {
            let count = status.waiting.reduce(0) { $0 + $1.count }
            findings.append(Finding("outbox", .ok, "\(count) entries wait, none for long"))
        }
        if let first = try store.runBlocking(Websites.expiries(at: now)).first {
            let expiry = CertificateExpiry(setting: first.website, path: first.website, notAfter: first.expiresAt)
            findings.append(
                expiry.warning(at: now).map {
                    Finding(
                        "certificates.websites", first.expiresAt <= now ? .failure : .warning,
                        "the certificate of \($0)",
                        remedy: "twoefay website renew \(first.website)")
                }
                    ?? Finding(
                        "certificates.websites", .ok,
                        "the first one ends in \(expiry.days(at: now)) days: \(first.website)"))
        }
        return findings
    }

    /// Checks the directories against the websites of the store.
    private func directories(_ store: Store) throws(StoreFailure) -> [Finding] {
        guard !settings.directories.all.isEmpty else { return [] }
        let warnings = try settings.directoryWarnings(store)
        guard warnings.isEmpty else {
            return warnings.map {
                Finding(
                    "directories", .warning, $0,
                    remedy: "Correct 'directories' in the settings, or the website: twoefay website list.")
            }
        }
        return [Finding("directories", .ok, "the websites of all directories exist, and fit their groups")]
    }

    /// The time after which the heartbeat of a relay that lives has moved.
    private static let beatPause = Duration.milliseconds(2500)

    private func relays(
        _ store: Store, _ before: [StoreExamination.ListedRelay], _ since: Instant
    ) throws(StoreFailure) -> Finding {
        let beats = Dictionary(before.map { ($0.id, $0.beat) }) { $1 }
        var now = before
        var living: [StoreExamination.ListedRelay] = []
        while living.count < now.count, facts.time.instant() - since < Self.beatPause {
            // Between two questions, nothing is waited for but time.
            poll(nil, 0, 250)
            now = try store.runBlocking(StoreExamination.relays)
            living = now.filter { relay in beats[relay.id].map { $0 != relay.beat } ?? true }
        }
        guard !living.isEmpty else {
            return Finding(
                "relays", .warning, before.isEmpty ? "no relay runs" : "no heartbeat moves of \(before.count) relays",
                remedy: "Start one: twoefayd, or systemctl start twoefayd. Its log says why it ended.")
        }
        var versions: [String] = []
        for relay in living {
            let notes = try store.runBlocking(StoreExamination.starts(at: relay.startedAt))
            let note = notes.last { $0.hasPrefix("relay \(relay.id.text), version ") }
            versions.append(note.flatMap { $0.split(separator: " ").last.map(String.init) } ?? "unknown")
        }
        let all = zip(living, versions).map { "\($0.id.text.prefix(8)) (version \($1))" }.joined(separator: ", ")
        let measured = "\(living.count) of \(now.count) are alive: \(all)"
        if Set(versions + [Program.version]).subtracting(["unknown"]).count > 1 {
            return Finding(
                "relays", .warning, "\(measured); this program is \(Program.version)",
                remedy: "Finish the update: all relays and this tool should have one version.")
        }
        if living.count < now.count {
            return Finding(
                "relays", .warning, measured, remedy: "The others have ended; a living relay takes over their work.")
        }
        return Finding("relays", .ok, measured)
    }
}

/// The difference of another clock from that of this machine.
enum ClockDifference {
    /// Returns the time of a date in HTTP; nil if it is none.
    static func time(httpDate text: String) -> Timestamp? {
        let epoch = Timestamp(seconds: 0)
        // A number would be seconds from now.
        guard text.hasSuffix("GMT") else { return nil }
        return RetryAfter.wait(text, at: epoch).map { epoch + $0 }
    }

    /// Judges a clock that was read between two moments of this machine's clock.
    static func finding(
        _ name: String, _ whose: String, _ other: Timestamp, between first: Timestamp, _ last: Timestamp,
        resolution: Duration = .zero
    ) -> Finding {
        // Within the time of the question, and the resolution of the answer, there is no difference.
        let ahead = max(other - last, .zero)
        let behind = max(first - (other + resolution), .zero)
        let (difference, word) = ahead > .zero ? (ahead, "ahead of") : (behind, "behind")
        guard difference >= .seconds(2) else {
            return Finding(name, .ok, "\(whose) clock agrees with this machine's")
        }
        let seconds = difference.wholeMilliseconds / 1000
        return Finding(
            name, difference >= .seconds(30) ? .failure : .warning,
            "\(whose) clock is \(seconds) s \(word) this machine's",
            remedy: "Run chrony or systemd-timesyncd on both: codes, proofs and certificates depend on the time.")
    }
}
