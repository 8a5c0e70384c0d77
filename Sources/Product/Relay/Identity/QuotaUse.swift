import Domain
import Synchronization

/// The part of their quotas that the callers of this relay have taken. Shared by all loops.
///
/// The caller is identified by what the transport has checked, before the store is asked. A website
/// counts by its key, so a revoked key uses none of the website's quota; a phone counts by its id or
/// its key; anybody else by address.
public final class QuotaUse: Sendable {
    public enum Subject: Hashable, Sendable {
        case website(key: [UInt8])
        case phone(DeviceID)
        /// A phone without a certificate. Its signature has not been verified yet: the address
        /// keeps anybody who knows the key from taking the phone's places from elsewhere.
        case proof(key: [UInt8], address: String)
        /// An IPv4 address, or a network of IPv6 (/64).
        case address(String)

        public static func presented(_ proof: PresentedProof, from address: String) -> Subject {
            .proof(key: proof.possession.key, address: SenderThrottle.network(address))
        }

        public static func stranger(_ address: String) -> Subject { .address(SenderThrottle.network(address)) }
    }

    private struct Counts {
        var working: [Subject: Int] = [:]
        var held: [WebsiteID: Int] = [:]
    }

    private let quotas: Quotas
    private let counts = Mutex(Counts())

    public init(_ quotas: Quotas) { self.quotas = quotas }

    /// Takes a place for a request in work; false where the subject has all that it may have.
    public func begin(_ subject: Subject) -> Bool {
        let most = limit(subject)
        return counts.withLock { $0.working.take(subject, most) }
    }

    public func end(_ subject: Subject) { counts.withLock { $0.working.release(subject) } }

    /// Takes a place for a held request, which is free again when the last reference to it is gone;
    /// nil where the website has all that it may have.
    public func hold(_ website: WebsiteID) -> HeldRequestSlot? {
        guard counts.withLock({ $0.held.take(website, quotas.held) }) else { return nil }
        return HeldRequestSlot(website, self)
    }

    fileprivate func release(_ website: WebsiteID) { counts.withLock { $0.held.release(website) } }

    private func limit(_ subject: Subject) -> Int {
        switch subject {
        case .website: quotas.requests
        case .phone, .proof, .address: quotas.callerRequests
        }
    }

    /// Callers that have a place now.
    var subjects: Int { counts.withLock { $0.working.count + $0.held.count } }
}

/// A held request's place in its website's quota, for as long as it lives.
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
        guard self[key, default: 0] < most else { return false }
        self[key, default: 0] += 1
        return true
    }

    /// Releases one unit. A caller without units is forgotten.
    fileprivate mutating func release(_ key: Key) {
        guard let count = self[key], count > 1 else { return self[key] = nil }
        self[key] = count - 1
    }
}
