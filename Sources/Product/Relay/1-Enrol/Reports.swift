import Crypto
import Domain
import Log
import Synchronization
import World

/// The store port for reports of phones about themselves (verb Enrol).
public protocol ReportStore: Sendable {
    /// Stores the report of an active phone, unless a later one is stored.
    ///
    /// - Returns: the report that is now stored; nil if the phone is no longer active.
    func store(_ report: DeviceReport, of phone: PhoneCredential) async throws(StoreFailure) -> DeviceReport?
}

/// A phone reports its system, its app and its state. The report is stored beside the phone, for
/// the website and the operator; a policy may judge it.
///
/// Invariant: a report never replaces a later one, so an old report that somebody sends again
/// changes nothing. A report is not in the audit, because phones may send many.
///
/// Tests: `APITests/ReportTests.swift`; for policies `RelayTests/PhonePostureTests.swift`.
extension Relay {
    /// Stores a report.
    ///
    /// - Parameter status: a `twoefay-status+jwt`.
    /// - Returns: the report that is now stored. It is another one if that is not older.
    public func report(_ status: String, by phone: PhoneCredential) async throws(Refusal) -> DeviceReport {
        if let wait = reportBudget.wait(phone.id, at: time.instant()) {
            metrics.reached(.report)
            throw .limited(retryAfter: wait)
        }
        guard let key = try? P256PublicKey(x963: phone.publicKey) else {
            log.error("device.key", [.device: phone.id.text])
            throw .broken
        }
        let audience = SignedDecision.audience(origin: settings.origin, website: phone.website.name)
        let report: DeviceReport
        do throws(DeviceReport.Fault) {
            report = try DeviceReport(status, of: phone.id, key: key, audience: audience, at: time.now())
        } catch {
            throw .invalid([FieldFault("status", error.code, error.message)])
        }
        let stored = try await withStore("report") { () async throws(StoreFailure) in
            try await store.store(report, of: phone)
        }
        guard let stored else { throw .unauthenticated }
        log.info(
            "device.reported",
            [
                .website: phone.website.name, .user: phone.user.text, .device: phone.id.text,
                .outcome: stored == report ? "stored" : "stale",
            ])
        return stored
    }
}

extension DeviceReport.Fault {
    fileprivate var code: FieldFault.Code {
        switch self {
        case .statement, .claim: .format
        case .clock: .mismatch
        }
    }

    fileprivate var message: LocalizedText {
        switch self {
        case .statement:
            LocalizedText(
                "must be a twoefay-status+jwt that this phone has signed",
                de: "muss ein twoefay-status+jwt sein, das dieses Telefon signiert hat")
        case .clock:
            LocalizedText(
                "has an iat that differs from the relay's clock by more than five minutes: see GET /time",
                de: "hat ein iat, das um mehr als fünf Minuten von der Uhr des Relays abweicht: siehe GET /time")
        case .claim(let name, let complaint):
            LocalizedText(
                "has a wrong claim: \(name) \(complaint.english)",
                de: "hat einen falschen Wert: \(name) \(complaint.german)")
        }
    }
}

/// The limit of reports of each phone. Each report is a script in the same queue as all logins.
final class ReportBudget: Sendable {
    static let most = 10
    static let minute = Duration.seconds(60)

    private struct Window {
        let since: Instant
        var count = 0
    }

    private let windows = Mutex(GenerationalCache<DeviceID, Window>(most: 16_384))

    /// Takes one report from the budget. Returns how long the phone must wait instead, if it has
    /// used up its budget of this minute.
    func wait(_ phone: DeviceID, at now: Instant) -> Duration? {
        windows.withLock { windows in
            var window = windows[phone] ?? Window(since: now)
            if now - window.since >= Self.minute { window = Window(since: now) }
            guard window.count < Self.most else { return window.since + Self.minute - now }
            window.count += 1
            windows[phone] = window
            return nil
        }
    }
}
