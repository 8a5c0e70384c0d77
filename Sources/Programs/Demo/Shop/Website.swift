import Bytes
import EventLoop
import HTTP
import Synchronization
import TwoefayClient
import World

/// The login logic of a website that trusts only the phones whose keys it has pinned.
///
/// It logs a customer in only if one of these phones signed the approval. It trusts neither the
/// relay, which carries challenge and answer, nor a phone without a pinned key. Codes are the
/// exception: the relay alone verifies them. Tested in `WebsiteTests.swift`.
public final class Website: Sendable {
    /// The result of one login.
    public struct Verdict: Sendable, Equatable {
        /// The outcome that the relay reported.
        public let outcome: LoginOutcome
        /// The verified approval by a phone; nil if there is none. Without it only a code can log
        /// in, where codes are accepted.
        public let approval: Approval?
        /// The check that failed although the relay reported a success.
        public let fault: ReceiptFault?
        /// Whether a code was used. Only the relay has verified it.
        public let hasCode: Bool

        init(
            outcome: LoginOutcome, approval: Approval? = nil, fault: ReceiptFault? = nil, hasCode: Bool = false
        ) {
            self.outcome = outcome
            self.approval = approval
            self.fault = fault
            self.hasCode = hasCode
        }

        public var isLetIn: Bool { approval != nil || hasCode }
    }

    /// The data that a real website stores in its database.
    private struct Records {
        var customers: [String: PinnedPhones] = [:]
        /// The nonces of open logins, with the latest time at which each ends.
        var openRequests: [String: Instant] = [:]
    }

    /// The client for all routes that need no data of this object.
    public let relay: RelayClient
    let backgroundTasks: BackgroundTasks
    private let carrier: HTTP2Carrier
    private let bindings: BindingCheck
    private let receipts: ReceiptCheck
    private let time: any TimeSource
    private let randomness: any Randomness
    private let records = Mutex(Records())

    /// The number of digits, as in this website's policy at the relay.
    private static let digits = 2
    /// The lifetime of an activation code.
    private static let codeLife = Duration.seconds(10 * 60)
    /// The lifetime of an activation's secret. A phone that used the code at the last moment may
    /// wait for an approval by another phone. That approval is valid for a day.
    private static let secretLife = Duration.seconds(25 * 3600)
    /// The longest life of a challenge, with a margin: see `RelayClient.wait`.
    private static let questionLife = Duration.seconds(12 * 60)
    /// The retry policy; short, because a person waits for the page.
    private static let retries = RetryPolicy(timeout: .seconds(4))

    public init(
        _ access: WebsiteAccess, loop: EventLoop, time: any TimeSource, randomness: any Randomness,
        observer: @escaping MessageObserver = { _ in }
    ) throws(CallFault) {
        carrier = try HTTP2Carrier(
            loop: loop, relay: access.relay, authority: access.authority, certificate: access.certificate,
            key: access.key)
        backgroundTasks = BackgroundTasks(loop: loop)
        relay = RelayClient(
            ObservedCarrier(carrier: carrier, observer: observer), retries: Self.retries, time: time,
            randomness: randomness)
        bindings = BindingCheck(origin: access.relay.text, website: access.name)
        receipts = ReceiptCheck(
            origin: access.relay.text, website: access.name, displayName: access.displayName,
            leastDigits: Self.digits)
        self.time = time
        self.randomness = randomness
    }

    public func close() async {
        await backgroundTasks.close()
        await carrier.close()
    }

    // MARK: Phones

    /// Registers a customer, and returns the activation URI for the first phone, with a secret that
    /// the relay never sees.
    public func register(
        _ username: String, email: String? = nil, phone: String? = nil, language: String? = nil
    ) async throws(CallFault) -> String {
        let activation: Activation
        let token: String
        do throws(CallFault) {
            let registered = try await relay.register(username, email: email, phone: phone, language: language)
            // The shop's policy is enrolment: open, so there is an activation.
            guard let shown = registered.activation else { throw .odd("the relay mails the activation") }
            (token, activation) = (registered.token, shown)
        } catch  where error.problem?.code == .shownOnce {
            // The registration succeeded, but its answer was lost.
            token = try await relay.user(username).token
            activation = try await relay.activation(for: username)
        }
        records.withLock { $0.customers[username] = PinnedPhones(token: token) }
        return uri(of: activation, for: username)
    }

    /// Returns an activation URI for another phone. If the customer already has a phone, the relay
    /// requires an approval first: see `Problem.approval`.
    public func activation(for username: String, approval: String? = nil) async throws(CallFault) -> String {
        uri(of: try await relay.activation(for: username, approval: approval), for: username)
    }

    private func uri(of activation: Activation, for username: String) -> String {
        let k = Secret(randomness.bytes(32))
        let end = time.instant() + Self.secretLife
        records.withLock { $0.customers[username]?.expect(k, until: end) }
        backgroundTasks.begin { [self] in
            // A phone may be bound while no page checks for it, so the website checks once when the
            // code expires. A phone that is bound later is found when it first answers.
            await carrier.pause(for: Self.codeLife)
            _ = try? await pinPhones(of: username)
        }
        return activation.uri(with: k)
    }

    /// Updates the pinned phones from the relay: see `PinnedPhones`.
    ///
    /// - Returns: the customer, as the relay stores them.
    @discardableResult
    public func pinPhones(of username: String) async throws(CallFault) -> RelayUser {
        let user = try await relay.user(username)
        let now = time.instant()
        records.withLock { $0.customers[username]?.look(at: user.devices, by: bindings, at: now) }
        return user
    }

    /// Removes a phone's key. Its signatures are refused from then on, whatever the relay reports.
    func unpin(_ device: String, of username: String) {
        records.withLock { $0.customers[username]?.unpin(device) }
    }

    /// Returns the ids of the pinned phones.
    func pinned(of username: String) -> Set<String> {
        Set(records.withLock { $0.customers[username]?.phones ?? [] }.map(\.device))
    }

    // MARK: Logins

    public func ask(_ login: LoginRequest) async throws(CallFault) -> OpenLogin {
        let open = try await relay.ask(login)
        let now = time.instant()
        records.withLock { records in
            // Expired entries are removed, so that a login whose verdict nobody reads does not stay
            // forever.
            records.openRequests = records.openRequests.filter { $0.value > now }
            records.openRequests[open.asked.request] = now + Self.questionLife
        }
        return open
    }

    /// The number of open logins.
    var openCount: Int { records.withLock { $0.openRequests.count } }

    /// Waits for the end of a login, and verifies its result. It returns a success only once.
    ///
    /// - Parameter takesCodes: whether a code is sufficient.
    public func verdict(on login: OpenLogin, takesCodes: Bool = false) async throws(CallFault) -> Verdict {
        // The request is used up in any case, even after an error.
        defer { _ = spend(login.asked.request) }
        let outcome = try await end(of: login.challenge)
        guard outcome.isSuccess else { return Verdict(outcome: outcome) }
        if takesCodes, outcome.proof == .code {
            let isFirst = spend(login.asked.request)
            return Verdict(outcome: outcome, fault: isFirst ? nil : .requestUsed, hasCode: isFirst)
        }
        do throws(ReceiptFault) {
            let answered = try LoginEvidence(outcome)
            let phones = await phones(of: login.asked.username, with: answered.device)
            let approval = try await receipts.approval(
                answered, to: login.asked, from: phones, at: time.now().seconds, spend: spend)
            return Verdict(outcome: outcome, approval: approval)
        } catch {
            return Verdict(outcome: outcome, fault: error)
        }
    }

    /// Waits for the result of a challenge through temporary errors of the relay or of a proxy.
    /// Nobody else waits for it, so a fraud report that is missed here would be lost.
    func end(of challenge: String) async throws(CallFault) -> LoginOutcome {
        let start = time.instant()
        while true {
            do throws(CallFault) {
                return try await relay.wait(for: challenge)
            } catch {
                if case .cancelled = error { throw error }
                // The relay does not know this challenge.
                if error.problem?.status == 404 { throw error }
                guard time.instant() - start < Self.questionLife else { throw error }
            }
            await carrier.pause(for: .seconds(2))
        }
    }

    /// Returns the pinned phones. If the answering phone is not among them, it may have been bound
    /// unnoticed, so the website checks again.
    private func phones(of username: String, with device: String) async -> [PinnedPhone] {
        let now = time.instant()
        let isExpected = records.withLock { records in
            guard let customer = records.customers[username] else { return false }
            return customer.isExpecting(at: now) && !customer.phones.contains { $0.device == device }
        }
        if isExpected { _ = try? await pinPhones(of: username) }
        return records.withLock { $0.customers[username]?.phones ?? [] }
    }

    private func spend(_ request: String) -> Bool {
        records.withLock { $0.openRequests.removeValue(forKey: request) != nil }
    }
}
