// A stand-in: see LocalAuthentication.swift.
import Foundation

public final class DCAppAttestService: Sendable {
    public static let shared = DCAppAttestService()

    public var isSupported: Bool { false }

    public func generateKey() async throws -> String { "" }
    public func attestKey(_ key: String, clientDataHash: Data) async throws -> Data { Data() }
    public func generateAssertion(_ key: String, clientDataHash: Data) async throws -> Data { Data() }
}

public struct DCError: Error {
    public enum Code { case invalidKey }

    public init(_ code: Code) {}
}
