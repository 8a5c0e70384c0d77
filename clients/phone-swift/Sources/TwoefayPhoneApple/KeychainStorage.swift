// Not compiled on Linux: the keychain is Apple's.
import Foundation
import Security
import TwoefayPhone

/// Enrolments in the keychain, one item each, for this device only and in no backup.
public struct KeychainStorage: PhoneStorage {
    public struct Failure: Error {
        public let status: OSStatus
    }

    private let service: String
    private let group: String?

    /// - Parameters:
    ///   - service: the name of the items, such as the bundle id.
    ///   - group: the access group, if an extension of the app reads them, too.
    public init(service: String, group: String? = nil) {
        self.service = service
        self.group = group
    }

    private func query(_ id: String?) -> [CFString: Any] {
        var query: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecAttrService: service]
        query[kSecUseDataProtectionKeychain] = true
        if let id { query[kSecAttrAccount] = id }
        if let group { query[kSecAttrAccessGroup] = group }
        return query
    }

    public func store(_ enrolment: Enrolment) throws {
        let value: [CFString: Any] = [
            kSecValueData: Data(enrolment.stored),
            kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
        ]
        var status = SecItemUpdate(query(enrolment.id) as CFDictionary, value as CFDictionary)
        if status == errSecItemNotFound {
            status = SecItemAdd(query(enrolment.id).merging(value) { $1 } as CFDictionary, nil)
        }
        guard status == errSecSuccess else { throw Failure(status: status) }
    }

    /// Returns all enrolments. The keychain outlives the app: delete them after a new installation,
    /// if the app does not mean to keep them.
    public func all() throws -> [Enrolment] {
        var query = query(nil)
        query[kSecMatchLimit] = kSecMatchLimitAll
        query[kSecReturnData] = true
        var found: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &found)
        guard status != errSecItemNotFound else { return [] }
        guard status == errSecSuccess else { throw Failure(status: status) }
        return try (found as? [Data] ?? []).map { try Enrolment(stored: Array($0)) }
    }

    /// Deletes the enrolment. A key of the Secure Enclave is gone with its stored form.
    public func remove(_ id: String) throws {
        let status = SecItemDelete(query(id) as CFDictionary)
        guard status == errSecSuccess || status == errSecItemNotFound else { throw Failure(status: status) }
    }
}
