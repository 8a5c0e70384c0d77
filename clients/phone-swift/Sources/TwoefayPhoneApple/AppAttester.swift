// Not compiled on Linux: App Attest is Apple's.
import DeviceCheck
import Foundation
import TwoefayPhone

/// App Attest. The names of its keys are in the defaults: they are no secret.
public struct AppAttester: Attester {
    /// - Returns: nil if the device does not support App Attest, such as the simulator.
    public init?() { guard DCAppAttestService.shared.isSupported else { return nil } }

    private func name(_ id: String) -> String { "twoefay-attest-\(id)" }

    public func attest(_ clientDataHash: [UInt8], for id: String) async throws -> JSONObject {
        let key = try await DCAppAttestService.shared.generateKey()
        let object = try await DCAppAttestService.shared.attestKey(key, clientDataHash: Data(clientDataHash))
        UserDefaults.standard.set(key, forKey: name(id))
        return AppAttestation.member(keyID: key, object: Array(object))
    }

    public func assert(_ decisionHash: [UInt8], for id: String) async throws -> [UInt8] {
        guard let key = UserDefaults.standard.string(forKey: name(id)) else { throw DCError(.invalidKey) }
        return Array(
            try await DCAppAttestService.shared.generateAssertion(key, clientDataHash: Data(decisionHash)))
    }
}
