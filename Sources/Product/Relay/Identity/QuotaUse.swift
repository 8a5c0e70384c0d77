import Domain
import Synchronization

/// The amounts of their quotas that the callers of this relay use now. All loops share it.
///
/// A caller is identified by what the transport has verified, before the store is queried. A
/// website is counted by its key, so a revoked key uses nothing of the website's quota. A phone is
/// counted by its id or key, and any other caller by its address.
public final class QuotaUse: Sendable {
    public enum Subject: Hashable, Sendable {
        case website(key: [UInt8])
        case phone(DeviceID)
        /// A phone without a certificate. Its signature is not verified yet, so the address is part
        /// of the identity. Otherwise any caller who knows the key could use up the phone's quota
        /// from elsewhere.
        case proof(key: [UInt8], address: String)
        /// An IPv4 address, or an IPv6 network (/64).
        case address(String)

        public static func presented(_ proof: PresentedProof, from address: String) -> Subject {
            .proof(key: proof.possession.key, address: SenderThrottle.network(address))
        }

        public func hash(into hasher: inout Hasher) {
            switch self {
            case .website(let key): hasher.combine(HashedBytes(key))
            case .phone(let id): hasher.combine(id)
            case .proof(let key, let address):
                hasher.combine(HashedBytes(key))
                hasher.combine(address)
            case .address(let address): hasher.combine(address)
            }
        }

        public static func stranger(_ address: String) -> Subject { .address(SenderThrottle.network(address)) }
    }

    private struct Counts {
        var working: [Subject: Int] = [:]
        var held: [WebsiteID: Int] = [:]
    }

    private let current: Mutex<Quotas>
    private var quotas: Quotas { current.withLock { $0 } }
    private let counts = Mutex(Counts())

    public init(_ quotas: Quotas) { current = Mutex(quotas) }

    /// Replaces the limits for later uses. What callers hold already stays theirs.
    func replace(_ quotas: Quotas) { current.withLock { $0 = quotas } }

    /// Counts a request in work. Returns false if the subject's quota is used up. Each successful
    /// call is followed by a call of `end`.
    public func begin(_ subject: Subject) -> Bool {
        let most = limit(subject)
        return counts.withLock { $0.working.take(subject, most) }
    }

    public func end(_ subject: Subject) { counts.withLock { $0.working.release(subject) } }

    /// Counts a held request until the last reference to the slot is gone. Returns nil if the
    /// website's quota is used up.
    ///
    /// - Parameter most: the website's own limit; nil if that of the settings applies.
    public func hold(_ website: WebsiteID, upTo most: Int? = nil) -> HeldRequestSlot? {
        guard counts.withLock({ $0.held.take(website, most ?? quotas.held) }) else { return nil }
        return HeldRequestSlot(website, self)
    }

    /// The number of held requests of a website.
    func held(by website: WebsiteID) -> Int { counts.withLock { $0.held[website] ?? 0 } }

    fileprivate func release(_ website: WebsiteID) { counts.withLock { $0.held.release(website) } }

    private func limit(_ subject: Subject) -> Int {
        switch subject {
        case .website: quotas.requests
        case .phone, .proof, .address: quotas.callerRequests
        }
    }

    /// The number of callers with requests in work, plus the number of websites with held requests.
    var subjects: Int { counts.withLock { $0.working.count + $0.held.count } }
}

/// The slot of one held request in its website's quota. Its deinitialisation gives the slot back.
public final class HeldRequestSlot: Sendable {
    private let website: WebsiteID
    private let use: QuotaUse

    fileprivate init(_ website: WebsiteID, _ use: QuotaUse) {
        self.website = website
        self.use = use
    }

    deinit { use.release(website) }
}

extension Dictionary where Value == Int {
    fileprivate mutating func take(_ key: Key, _ most: Int) -> Bool {
        let count = self[key, default: 0]
        guard count < most else { return false }
        self[key] = count + 1
        return true
    }

    /// Gives one unit back. A caller without units is removed.
    fileprivate mutating func release(_ key: Key) {
        guard let count = self[key], count > 1 else { return self[key] = nil }
        self[key] = count - 1
    }
}
