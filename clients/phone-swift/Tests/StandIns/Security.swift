// swift-format-ignore-file: AlwaysUseLowerCamelCase
// A stand-in: see LocalAuthentication.swift. CoreFoundation's types are those of Swift here.
import Foundation
import FoundationNetworking

public typealias CFString = String
public typealias CFTypeRef = Any
public typealias CFData = Data
public typealias CFDictionary = [String: Any]
public typealias CFArray = [Any]
public typealias CFDate = Date
public typealias CFError = NSError
public typealias OSStatus = Int32

public class CFAllocator {}
public class SecAccessControl {}
public class SecKey {}
public class SecTrust {}
public class SecPolicy {}
public class SecCertificate {}

public struct SecKeyAlgorithm: Sendable {
    public static let rsaSignatureMessagePKCS1v15SHA256 = SecKeyAlgorithm()
}

public struct SecAccessControlCreateFlags: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static let privateKeyUsage = SecAccessControlCreateFlags(rawValue: 1)
    public static let userPresence = SecAccessControlCreateFlags(rawValue: 2)
}

public let kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly: CFString = "kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly"
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString =
    "kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly"
public let kSecAttrKeyType: CFString = "kSecAttrKeyType"
public let kSecAttrKeyTypeRSA: CFString = "kSecAttrKeyTypeRSA"
public let kSecAttrKeyClass: CFString = "kSecAttrKeyClass"
public let kSecAttrKeyClassPublic: CFString = "kSecAttrKeyClassPublic"
public let kSecClass: CFString = "kSecClass"
public let kSecClassGenericPassword: CFString = "kSecClassGenericPassword"
public let kSecAttrService: CFString = "kSecAttrService"
public let kSecAttrAccount: CFString = "kSecAttrAccount"
public let kSecAttrAccessGroup: CFString = "kSecAttrAccessGroup"
public let kSecUseDataProtectionKeychain: CFString = "kSecUseDataProtectionKeychain"
public let kSecValueData: CFString = "kSecValueData"
public let kSecAttrAccessible: CFString = "kSecAttrAccessible"
public let kSecMatchLimit: CFString = "kSecMatchLimit"
public let kSecMatchLimitAll: CFString = "kSecMatchLimitAll"
public let kSecReturnData: CFString = "kSecReturnData"
public let errSecItemNotFound: OSStatus = -25300
public let errSecSuccess: OSStatus = 0

public typealias CFErrorPointer = UnsafeMutablePointer<Unmanaged<CFError>?>

public func SecAccessControlCreateWithFlags(
    _ allocator: CFAllocator?, _ protection: CFTypeRef, _ flags: SecAccessControlCreateFlags, _ error: CFErrorPointer?
) -> SecAccessControl? { nil }
public func SecKeyCreateWithData(_ data: CFData, _ attributes: CFDictionary, _ error: CFErrorPointer?) -> SecKey? {
    nil
}
public func SecKeyVerifySignature(
    _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ data: CFData, _ signature: CFData, _ error: CFErrorPointer?
) -> Bool { false }

public func SecItemUpdate(_ query: CFDictionary, _ values: CFDictionary) -> OSStatus { 0 }
public func SecItemAdd(_ values: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus { 0 }
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus { 0 }
public func SecItemDelete(_ query: CFDictionary) -> OSStatus { 0 }

public func SecCertificateCopyData(_ certificate: SecCertificate) -> CFData { Data() }
public func SecCertificateCreateWithData(_ allocator: CFAllocator?, _ data: CFData) -> SecCertificate? { nil }
public func SecPolicyCreateSSL(_ isServer: Bool, _ host: CFString?) -> SecPolicy { SecPolicy() }

public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> CFArray? { nil }
@discardableResult public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: CFTypeRef) -> OSStatus { 0 }
@discardableResult
public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchors: CFArray?) -> OSStatus { 0 }
@discardableResult
public func SecTrustSetAnchorCertificatesOnly(_ trust: SecTrust, _ isOnly: Bool) -> OSStatus { 0 }
@discardableResult public func SecTrustSetNetworkFetchAllowed(_ trust: SecTrust, _ isAllowed: Bool) -> OSStatus { 0 }
@discardableResult public func SecTrustSetVerifyDate(_ trust: SecTrust, _ date: CFDate) -> OSStatus { 0 }
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: UnsafeMutablePointer<CFError?>?) -> Bool { false }

extension URLProtectionSpace {
    public var serverTrust: SecTrust? { nil }
}

extension URLCredential {
    public convenience init(trust: SecTrust) { self.init(user: "", password: "", persistence: .none) }
}

public enum TLSVersion { case TLSv12 }

extension URLSessionConfiguration {
    public var tlsMinimumSupportedProtocolVersion: TLSVersion {
        get { .TLSv12 }
        set {}
    }
}
