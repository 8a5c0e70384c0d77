import JSON

/// What the relay hands over as proof of a success: three members of /auth's answer, or of a callback's `data`. None of
/// it is believed before it was checked.
public struct LoginEvidence: Sendable, Equatable {
    public var device: String
    /// The JWS that the phone signed.
    public var receipt: String
    /// Base64url of what the phone showed.
    public var context: String

    public init(device: String, receipt: String, context: String) {
        self.device = device
        self.receipt = receipt
        self.context = context
    }

    /// From the whole answer. Where the relay itself claims no signature, or no success, there is nothing to check.
    public init(_ answer: JSONObject) throws(ReceiptFault) {
        guard let login = answer["login"]?.string, login.isExactly("success") else { throw .notSuccessful }
        guard let proof = answer["proof"]?.string, proof.isExactly("signed") else {
            throw .notSigned(proof: answer["proof"]?.string)
        }
        guard let device = answer["device"]?.string, let receipt = answer["receipt"]?.string,
            let context = answer["context"]?.string
        else { throw .incomplete }
        self.init(device: device, receipt: receipt, context: context)
    }
}
