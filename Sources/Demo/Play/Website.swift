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
        /// The phone's own word. Nobody is let in without it.
        public let approval: Approval?
        /// Why what the relay called a success was none.
        public let fault: ReceiptFault?

        public var isLetIn: Bool { approval != nil }
    }

    /// What a website keeps in its database.
    private struct Records {
        struct Customer {
            let token: String
            /// Until the phone is pinned.
            var k: Secret?
            var phones: [PinnedPhone] = []
        }

        var customers: [String: Customer] = [:]
        /// The nonces of logins that are not over.
        var openRequests: Set<String> = []
    }

    private let relay: RelayClient
    private let carrier: HTTP2Carrier
    private let bindings: BindingCheck
    private let receipts: ReceiptCheck
    private let time: any TimeSource
    private let randomness: any Randomness
    private let records = Mutex(Records())

    public init(
        _ access: WebsiteAccess, loop: EventLoop, randomness: any Randomness, witness: @escaping Witness = { _ in }
    ) throws(CallFault) {
        carrier = try HTTP2Carrier(
            loop: loop, relay: access.relay, authority: access.authority, certificate: access.certificate,
            key: access.key)
        relay = RelayClient(Overheard(carrier: carrier, witness: witness), time: loop.time, randomness: randomness)
        let origin = access.relay.text
        bindings = BindingCheck(origin: origin, website: access.name)
        receipts = ReceiptCheck(
            origin: origin, website: access.name, displayName: access.displayName, leastDigits: 2)
        time = loop.time
        self.randomness = randomness
    }

    /// What the new customer's phone is to read. The website adds a secret to it that the relay never sees.
    public func register(_ username: String, email: String) async throws(CallFault) -> String {
        let registered = try await relay.register(username, email: email)
        let k = Secret(randomness.bytes(32))
        records.withLock { $0.customers[username] = .init(token: registered.token, k: k) }
        return registered.activation.uri(with: k)
    }

    /// Takes a phone's key for the customer's where the phone itself says so. From then on nobody can put another in its
    /// place.
    public func pinPhones(of username: String) async throws {
        let user = try await relay.user(username)
        guard let customer = records.withLock({ $0.customers[username] }), let k = customer.k else { return }
        var phones = customer.phones
        for device in user.devices where !phones.contains(where: { $0.device == device.id }) {
            phones.append(try bindings.pinned(device, token: customer.token, k: k))
        }
        records.withLock { records in
            records.customers[username]?.phones = phones
            if !phones.isEmpty { records.customers[username]?.k = nil }
        }
    }

    public func ask(_ login: LoginRequest) async throws(CallFault) -> OpenLogin {
        let open = try await relay.ask(login)
        _ = records.withLock { $0.openRequests.insert(open.asked.request) }
        return open
    }

    /// Waits for the end, and looks whether it is what it says.
    public func verdict(on login: OpenLogin) async throws(CallFault) -> Verdict {
        let outcome = try await relay.wait(for: login)
        guard outcome.isSuccess else {
            _ = spend(login.asked.request)
            return Verdict(outcome: outcome, approval: nil, fault: nil)
        }
        let phones = records.withLock { $0.customers[login.asked.username]?.phones ?? [] }
        do throws(ReceiptFault) {
            let approval = try await receipts.approval(
                try Answered(outcome), to: login.asked, from: phones, at: time.now().seconds, spend: spend)
            return Verdict(outcome: outcome, approval: approval, fault: nil)
        } catch {
            return Verdict(outcome: outcome, approval: nil, fault: error)
        }
    }

    public func close() async { await carrier.close() }

    /// A receipt lets in once.
    private func spend(_ request: String) -> Bool { records.withLock { $0.openRequests.remove(request) != nil } }
}
