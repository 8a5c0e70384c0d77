import CPKCS11
import Glibc

/// The reason why a token failed. It contains nothing of the PIN.
struct TokenFailure: Error, Sendable, CustomStringConvertible {
    let description: String
    let isAboutPIN: Bool

    init(_ description: String, isAboutPIN: Bool = false) {
        self.description = description
        self.isAboutPIN = isAboutPIN
    }

    init(_ call: String, _ code: CK_RV) {
        let name =
            switch code {
            case CKR_PIN_INCORRECT: "the PIN is wrong"
            case CKR_PIN_LOCKED: "the PIN is locked"
            case CKR_PIN_EXPIRED: "the PIN has expired"
            case CKR_PIN_LEN_RANGE: "the PIN has the wrong length"
            case CKR_TOKEN_NOT_PRESENT: "the token is not present"
            case CKR_DEVICE_REMOVED: "the token was removed"
            default: "error 0x" + String(code, radix: 16)
            }
        self.init(
            "PKCS#11, \(call): \(name)",
            isAboutPIN: [CKR_PIN_INCORRECT, CKR_PIN_LOCKED, CKR_PIN_EXPIRED, CKR_PIN_LEN_RANGE].contains(code))
    }
}

/// The library of a token's maker, loaded and initialised until the process ends.
struct TokenModule {
    let functions: UnsafeMutablePointer<CK_FUNCTION_LIST>

    init(path: String) throws(TokenFailure) {
        guard let library = dlopen(path, RTLD_NOW | RTLD_LOCAL) else {
            throw TokenFailure(dlerror().map { String(cString: $0) } ?? "\(path) cannot be loaded")
        }
        typealias GetFunctionList =
            @convention(c) (
                UnsafeMutablePointer<UnsafeMutablePointer<CK_FUNCTION_LIST>?>?
            ) -> CK_RV
        guard let symbol = dlsym(library, "C_GetFunctionList") else {
            throw TokenFailure("\(path) is not a PKCS#11 module: it has no C_GetFunctionList")
        }
        var list: UnsafeMutablePointer<CK_FUNCTION_LIST>?
        let code = unsafeBitCast(symbol, to: GetFunctionList.self)(&list)
        guard code == CKR_OK, let list else { throw TokenFailure("C_GetFunctionList", code) }
        functions = list
        let begun = list.pointee.C_Initialize(nil)
        guard begun == CKR_OK || begun == CKR_CRYPTOKI_ALREADY_INITIALIZED else {
            throw TokenFailure("C_Initialize", begun)
        }
    }

    /// Throws unless a call has succeeded.
    func check(_ call: String, _ code: CK_RV) throws(TokenFailure) {
        guard code == CKR_OK else { throw TokenFailure(call, code) }
    }

    /// Returns the slot of the token with a label. If several tokens have the label, this fails,
    /// because any of them could be meant.
    func slot(ofToken label: String) throws(TokenFailure) -> CK_SLOT_ID {
        var count = CK_ULONG(0)
        try check("C_GetSlotList", functions.pointee.C_GetSlotList(1, nil, &count))
        var slots = [CK_SLOT_ID](repeating: 0, count: Int(count))
        try check("C_GetSlotList", functions.pointee.C_GetSlotList(1, &slots, &count))
        let found = slots.prefix(Int(count)).filter { self.label(of: $0) == label }
        guard let slot = found.first, found.count == 1 else {
            throw TokenFailure("there \(found.isEmpty ? "is no token" : "are several tokens") with the label \(label)")
        }
        return slot
    }

    /// Returns the label without its padding of spaces.
    private func label(of slot: CK_SLOT_ID) -> String? {
        var info = CK_TOKEN_INFO()
        guard functions.pointee.C_GetTokenInfo(slot, &info) == CKR_OK else { return nil }
        let bytes = withUnsafeBytes(of: info.label) { Array($0) }
        let end = bytes.lastIndex { $0 != UInt8(ascii: " ") && $0 != 0 } ?? -1
        return String(decoding: bytes[...end], as: UTF8.self)
    }
}
