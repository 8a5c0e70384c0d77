// A stand-in: see LocalAuthentication.swift.
import Foundation
import LocalAuthentication
import Security

public protocol HashFunction {}

public typealias Bytes = [UInt8]

public struct SHA256: HashFunction {
    public static func hash(data: some DataProtocol) -> Bytes { [] }
}

public struct SHA512: HashFunction {}

public enum Insecure {
    public struct SHA1: HashFunction {}
}

public struct SymmetricKey: Sendable {
    public init(data: some ContiguousBytes) {}
}

public struct HMAC<Function: HashFunction> {
    public static func authenticationCode(for data: some DataProtocol, using key: SymmetricKey) -> Bytes { [] }
}

public enum AES {
    public enum GCM {
        public struct Nonce {
            public init(data: some DataProtocol) throws {}
        }

        public struct SealedBox {
            public init(nonce: Nonce, ciphertext: some DataProtocol, tag: some DataProtocol) throws {}
        }

        public static func open(
            _ box: SealedBox, using key: SymmetricKey, authenticating data: some DataProtocol
        ) throws -> Data { Data() }
    }
}

public struct SharedSecret: Sendable {
    public func withUnsafeBytes<Value>(_ body: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value {
        try [].withUnsafeBytes(body)
    }
}

public struct Signature: Sendable {
    public init(rawRepresentation: some DataProtocol) throws {}

    init() {}

    public var rawRepresentation: Data { Data() }
}

public struct VerifyingKey: Sendable {
    public init(x963Representation: some ContiguousBytes) throws {}

    init() {}

    public var x963Representation: Data { Data() }

    public func isValidSignature(_ signature: Signature, for data: some DataProtocol) -> Bool { false }
}

public enum P256 {
    public enum Signing {
        public typealias ECDSASignature = Signature
        public typealias PublicKey = VerifyingKey

        public struct PrivateKey: Sendable {
            public init(rawRepresentation: some ContiguousBytes) throws {}

            public var publicKey: PublicKey { VerifyingKey() }

            public func signature(for data: some DataProtocol) throws -> ECDSASignature { Signature() }
        }
    }

    public enum KeyAgreement {
        public struct PublicKey: Sendable {
            public init(x963Representation: some ContiguousBytes) throws {}

            init() {}

            public var x963Representation: Data { Data() }
        }
    }
}

public enum P384 {
    public enum Signing {
        public typealias ECDSASignature = Signature
        public typealias PublicKey = VerifyingKey
    }
}

public enum SecureEnclave {
    public static var isAvailable: Bool { false }

    public enum P256 {
        public enum Signing {
            public struct PrivateKey: Sendable {
                public init(
                    compactRepresentable: Bool = true, accessControl: SecAccessControl,
                    authenticationContext: LAContext? = nil
                ) throws {}
                public init(dataRepresentation: Data, authenticationContext: LAContext? = nil) throws {}

                public var publicKey: VerifyingKey { VerifyingKey() }
                public var dataRepresentation: Data { Data() }

                public func signature(for data: some DataProtocol) throws -> Signature { Signature() }
            }
        }

        public enum KeyAgreement {
            public struct PrivateKey: Sendable {
                public init(
                    compactRepresentable: Bool = true, accessControl: SecAccessControl,
                    authenticationContext: LAContext? = nil
                ) throws {}
                public init(dataRepresentation: Data, authenticationContext: LAContext? = nil) throws {}

                public var publicKey: CryptoKit.P256.KeyAgreement.PublicKey { .init() }
                public var dataRepresentation: Data { Data() }

                public func sharedSecretFromKeyAgreement(
                    with other: CryptoKit.P256.KeyAgreement.PublicKey
                ) throws -> SharedSecret { SharedSecret() }
            }
        }
    }
}
