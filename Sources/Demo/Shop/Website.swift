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
        struct Customer {
            let token: String
            /// One for each activation that no phone was pinned by yet.
            var secrets: [Secret] = []
            var phones: [PinnedPhone] = []
        }

        var customers: [String: Customer] = [:]
        /// The nonces of logins that are not over.
        var openRequests: Set<String> = []
    }

    /// For every route that needs nothing of what is kept here.
    public let relay: RelayClient
    let errands: Errands
    private let carrier: HTTP2Carrier
    private let bindings: BindingCheck
    private let receipts: ReceiptCheck
    private let time: any TimeSource
    private let randomness: any Randomness
    private let records = Mutex(Records())

    /// Numbers have two digits, as this website's policy at the relay says.
    private static let digits = 2
    /// Somebody looks at a page meanwhile.
    private static let retries = RetryPolicy(patience: .seconds(4))

    public init(
        _ access: WebsiteAccess, loop: EventLoop, randomness: any Randomness, witness: @escaping Witness = { _ in }
    ) throws(CallFault) {
        carrier = try HTTP2Carrier(
            loop: loop, relay: access.relay, authority: access.authority, certificate: access.certificate,
            key: access.key)
        errands = Errands(loop: loop)
        relay = RelayClient(
            Overheard(carrier: carrier, witness: witness), retries: Self.retries, time: loop.time,
            randomness: randomness)
        bindings = BindingCheck(origin: access.relay.text, website: access.name)
        receipts = ReceiptCheck(
            origin: access.relay.text, website: access.name, displayName: access.displayName,
            leastDigits: Self.digits)
        time = loop.time
        self.randomness = randomness
    }

    public func close() async {
        await errands.close()
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
        records.withLock { $0.customers[username] = .init(token: token) }
        return uri(of: activation, for: username)
    }

    /// The same for a further phone. Where the customer has one already the relay wants its approval first: `Problem.approval`.
    public func activation(for username: String, approval: String? = nil) async throws(CallFault) -> String {
        uri(of: try await relay.activation(for: username, approval: approval), for: username)
    }

    private func uri(of activation: Activation, for username: String) -> String {
        let k = Secret(randomness.bytes(32))
        records.withLock { $0.customers[username]?.secrets.append(k) }
        return activation.uri(with: k)
    }

    /// Takes a phone's key for the customer's where the phone itself says so. From then on nobody can put another in its
    /// place. A phone that proves nothing is passed over: what it signs is not believed.
    ///
    /// - Returns: the customer as the relay has them.
    @discardableResult
    public func pinPhones(of username: String) async throws(CallFault) -> RelayUser {
        let user = try await relay.user(username)
        records.withLock { records in
            guard var customer = records.customers[username] else { return }
            for device in user.devices where !customer.phones.contains(where: { $0.device == device.id }) {
                for (index, k) in customer.secrets.enumerated() {
                    guard let phone = try? bindings.pinned(device, token: customer.token, k: k) else { continue }
                    customer.phones.append(phone)
                    customer.secrets.remove(at: index)
                    break
                }
            }
            records.customers[username] = customer
        }
        return user
    }

    /// What that phone signs is not believed any more, whatever the relay says of it.
    func unpin(_ device: String, of username: String) {
        records.withLock { $0.customers[username]?.phones.removeAll { $0.device == device } }
    }

    /// By the ids of the phones.
    func pinned(of username: String) -> Set<String> {
        Set(records.withLock { $0.customers[username]?.phones ?? [] }.map(\.device))
    }

    // MARK: Logins

    public func ask(_ login: LoginRequest) async throws(CallFault) -> OpenLogin {
        let open = try await relay.ask(login)
        _ = records.withLock { $0.openRequests.insert(open.asked.request) }
        return open
    }

    /// Waits for the end, and looks whether it is what it says. It can be had once: a success lets in once.
    ///
    /// - Parameter takesCodes: a code that the customer typed is good enough for this.
    public func verdict(on login: OpenLogin, takesCodes: Bool = false) async throws(CallFault) -> Verdict {
        // However it ended, and whether or not anybody could say how.
        defer { _ = spend(login.asked.request) }
        let outcome = try await relay.wait(for: login)
        guard outcome.isSuccess else { return Verdict(outcome: outcome) }
        if takesCodes, outcome.proof == .code {
            let isFirst = spend(login.asked.request)
            return Verdict(outcome: outcome, fault: isFirst ? nil : .requestUsed, hasCode: isFirst)
        }
        do throws(ReceiptFault) {
            let answered = try Answered(outcome)
            let phones = records.withLock { $0.customers[login.asked.username]?.phones ?? [] }
            let approval = try await receipts.approval(
                answered, to: login.asked, from: phones, at: time.now().seconds, spend: spend)
            return Verdict(outcome: outcome, approval: approval)
        } catch {
            return Verdict(outcome: outcome, fault: error)
        }
    }

    private func spend(_ request: String) -> Bool { records.withLock { $0.openRequests.remove(request) != nil } }
}
