import Bytes
import EventLoop
import HTTP
import Synchronization
import TwoefayClient
import World

/// A website that lets somebody in where one of their phones said yes, and believes no one else: neither the relay, which
/// carries the question and the answer, nor a phone whose key it has not pinned.
public final class Website: Sendable {
    /// How one login ended.
    public struct Verdict: Sendable, Equatable {
        /// As the relay tells it.
        public let outcome: LoginOutcome
        /// The phone's own word. Nobody is let in without it, but by a code where codes are taken.
        public let approval: Approval?
        /// Why what the relay called a success was none.
        public let fault: ReceiptFault?
        /// By a code. That one was right is the relay's word alone.
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

    /// What a website keeps in its database.
    private struct Records {
        var customers: [String: PinnedPhones] = [:]
        /// The nonces of logins that are not over, and when each is at the latest.
        var openRequests: [String: Instant] = [:]
    }

    /// For every route that needs nothing of what is kept here.
    public let relay: RelayClient
    let backgroundTasks: BackgroundTasks
    private let carrier: HTTP2Transport
    private let bindings: BindingCheck
    private let receipts: ReceiptCheck
    private let time: any TimeSource
    private let randomness: any Randomness
    private let records = Mutex(Records())

    /// Numbers have two digits, as this website's policy at the relay says.
    private static let digits = 2
    /// An activation's code is good for ten minutes.
    private static let codeLife = Duration.seconds(10 * 60)
    /// A phone that took it in the last second may wait for another phone's yes, which counts for a day.
    private static let secretLife = Duration.seconds(25 * 3600)
    /// Nothing that was asked lives longer: see `RelayClient.wait`.
    private static let questionLife = Duration.seconds(12 * 60)
    /// Somebody looks at a page meanwhile.
    private static let retries = RetryPolicy(timeout: .seconds(4))

    public init(
        _ access: WebsiteAccess, loop: EventLoop, time: any TimeSource, randomness: any Randomness,
        observer: @escaping MessageObserver = { _ in }
    ) throws(CallFault) {
        carrier = try HTTP2Transport(
            loop: loop, relay: access.relay, authority: access.authority, certificate: access.certificate,
            key: access.key)
        backgroundTasks = BackgroundTasks(loop: loop)
        relay = RelayClient(
            ObservedTransport(carrier: carrier, observer: observer), retries: Self.retries, time: time,
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

    /// What the new customer's phone is to read. The website adds a secret to it that the relay never sees.
    public func register(
        _ username: String, email: String? = nil, phone: String? = nil, language: String? = nil
    ) async throws(CallFault) -> String {
        let activation: Activation
        let token: String
        do throws(CallFault) {
            let registered = try await relay.register(username, email: email, phone: phone, language: language)
            (token, activation) = (registered.token, registered.activation)
        } catch  where error.problem?.code == .shownOnce {
            // It was done, and the answer got lost.
            token = try await relay.user(username).token
            activation = try await relay.activation(for: username)
        }
        records.withLock { $0.customers[username] = PinnedPhones(token: token) }
        return uri(of: activation, for: username)
    }

    /// The same for a further phone. Where the customer has one already the relay wants its approval first: `Problem.approval`.
    public func activation(for username: String, approval: String? = nil) async throws(CallFault) -> String {
        uri(of: try await relay.activation(for: username, approval: approval), for: username)
    }

    private func uri(of activation: Activation, for username: String) -> String {
        let k = Secret(randomness.bytes(32))
        let end = time.instant() + Self.secretLife
        records.withLock { $0.customers[username]?.expect(k, until: end) }
        backgroundTasks.begin { [self] in
            // A look for a phone that came while nobody was on a page that looks for it. One that is missed now is looked for
            // when it first answers.
            await carrier.pause(for: Self.codeLife)
            _ = try? await pinPhones(of: username)
        }
        return activation.uri(with: k)
    }

    /// Looks which phones have come, and which have gone: see `PinnedPhones`.
    ///
    /// - Returns: the customer as the relay has them.
    @discardableResult
    public func pinPhones(of username: String) async throws(CallFault) -> RelayUser {
        let user = try await relay.user(username)
        let now = time.instant()
        records.withLock { $0.customers[username]?.look(at: user.devices, by: bindings, at: now) }
        return user
    }

    /// What that phone signs is not believed any more, whatever the relay says of it.
    func unpin(_ device: String, of username: String) {
        records.withLock { $0.customers[username]?.unpin(device) }
    }

    /// By the ids of the phones.
    func pinned(of username: String) -> Set<String> {
        Set(records.withLock { $0.customers[username]?.phones ?? [] }.map(\.device))
    }

    // MARK: Logins

    public func ask(_ login: LoginRequest) async throws(CallFault) -> OpenLogin {
        let open = try await relay.ask(login)
        let now = time.instant()
        records.withLock { records in
            // Whoever asks and does not wait for the verdict leaves nothing behind for ever.
            records.openRequests = records.openRequests.filter { $0.value > now }
            records.openRequests[open.asked.request] = now + Self.questionLife
        }
        return open
    }

    /// How many logins are not over.
    var openCount: Int { records.withLock { $0.openRequests.count } }

    /// Waits for the end, and looks whether it is what it says. It can be had once: a success lets in once.
    ///
    /// - Parameter takesCodes: a code that the customer typed is good enough for this.
    public func verdict(on login: OpenLogin, takesCodes: Bool = false) async throws(CallFault) -> Verdict {
        // However it ended, and whether or not anybody could say how.
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

    /// What became of it, whatever the relay, or a proxy before it, says meanwhile in a bad moment. Nobody else asks: a fraud
    /// that is not heard here is not heard at all.
    func end(of challenge: String) async throws(CallFault) -> LoginOutcome {
        let start = time.instant()
        while true {
            do throws(CallFault) {
                return try await relay.wait(for: challenge)
            } catch {
                if case .cancelled = error { throw error }
                // It knows of none.
                if error.problem?.status == 404 { throw error }
                guard time.instant() - start < Self.questionLife else { throw error }
            }
            await carrier.pause(for: .seconds(2))
        }
    }

    /// Where that one is none of them, it may have been bound while nobody looked.
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
