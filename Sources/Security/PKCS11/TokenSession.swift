import Bytes
import CPKCS11

/// A session with a token, in which one private key signs.
struct TokenSession {
    private let module: TokenModule
    private let handle: CK_SESSION_HANDLE
    private let key: CK_OBJECT_HANDLE

    init(_ module: TokenModule, token: String, key label: String, pin: Secret) throws(TokenFailure) {
        self.module = module
        let functions = module.functions
        let slot = try module.slot(ofToken: token)
        var session = CK_SESSION_HANDLE()
        try module.check(
            "C_OpenSession", functions.pointee.C_OpenSession(slot, CK_FLAGS(CKF_SERIAL_SESSION), nil, nil, &session))
        handle = session
        do throws(TokenFailure) {
            let code = pin.withBytes { pin in
                // The parameter lacks a const; modules do not write to it.
                let bytes = UnsafeMutableRawBufferPointer(mutating: pin).bindMemory(to: UInt8.self)
                return functions.pointee.C_Login(
                    session, CK_USER_TYPE(CKU_USER), bytes.baseAddress, CK_ULONG(pin.count))
            }
            guard code == CKR_OK || code == CKR_USER_ALREADY_LOGGED_IN else { throw TokenFailure("C_Login", code) }
            key = try Self.privateKey(label, in: session, module)
        } catch {
            _ = functions.pointee.C_CloseSession(session)
            throw error
        }
    }

    func close() { _ = module.functions.pointee.C_CloseSession(handle) }

    /// Returns the only private key with a label.
    private static func privateKey(
        _ label: String, in session: CK_SESSION_HANDLE, _ module: TokenModule
    ) throws(TokenFailure) -> CK_OBJECT_HANDLE {
        let functions = module.functions
        var kind = CK_OBJECT_CLASS(CKO_PRIVATE_KEY)
        var name = Array(label.utf8)
        let begun = withUnsafeMutableBytes(of: &kind) { kind in
            name.withUnsafeMutableBytes { name in
                var template = [
                    CK_ATTRIBUTE(
                        type: CK_ATTRIBUTE_TYPE(CKA_CLASS), pValue: kind.baseAddress, ulValueLen: CK_ULONG(kind.count)),
                    CK_ATTRIBUTE(
                        type: CK_ATTRIBUTE_TYPE(CKA_LABEL), pValue: name.baseAddress, ulValueLen: CK_ULONG(name.count)),
                ]
                return functions.pointee.C_FindObjectsInit(session, &template, CK_ULONG(template.count))
            }
        }
        try module.check("C_FindObjectsInit", begun)
        var found = [CK_OBJECT_HANDLE](repeating: 0, count: 2)
        var count = CK_ULONG(0)
        let code = functions.pointee.C_FindObjects(session, &found, 2, &count)
        _ = functions.pointee.C_FindObjectsFinal(session)
        try module.check("C_FindObjects", code)
        guard count == 1 else {
            throw TokenFailure(
                "there \(count == 0 ? "is no private key" : "are several private keys") with the label \(label)")
        }
        return found[0]
    }

    /// Returns an ECDSA signature over a digest: r‖s, 64 bytes.
    func sign(_ digest: [UInt8]) throws(TokenFailure) -> [UInt8] {
        let functions = module.functions
        var mechanism = CK_MECHANISM(mechanism: CK_MECHANISM_TYPE(CKM_ECDSA), pParameter: nil, ulParameterLen: 0)
        try module.check("C_SignInit", functions.pointee.C_SignInit(handle, &mechanism, key))
        var digest = digest
        var signature = [UInt8](repeating: 0, count: 64)
        var count = CK_ULONG(signature.count)
        try module.check(
            "C_Sign", functions.pointee.C_Sign(handle, &digest, CK_ULONG(digest.count), &signature, &count))
        guard count == 64 else { throw TokenFailure("the token's signature is not a P-256 signature") }
        return signature
    }
}
