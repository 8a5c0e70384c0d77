import Attestation
import JSON

/// The relay's evidence for a successful login, before it is checked.
///
/// It consists of members of the answer of `/auth`, or of the `data` of a webhook. Do not
/// trust any of them until `ReceiptCheck` has accepted the evidence.
public struct LoginEvidence: Sendable, Equatable {
    /// The id of the phone from which the receipt is said to come.
    public var device: String
    /// The phone's signed decision, a JWS in compact form.
    public var receipt: String
    /// The context that the phone showed, in base64url.
    public var context: String
    /// The check of a page's owner over the receipt; nil if there is none in the right form.
    public var owner: OwnerAssertion?

    /// Creates evidence from the members of an answer.
    public init(device: String, receipt: String, context: String, owner: OwnerAssertion? = nil) {
        self.device = device
        self.receipt = receipt
        self.context = context
        self.owner = owner
    }

    /// Takes the evidence from a whole answer of the relay.
    ///
    /// Throws `.notSuccessful` or `.notSigned` if the relay itself reports no success or no
    /// signature. There is nothing to check then. Throws `.incomplete` if a member is missing.
    public init(_ answer: JSONObject) throws(ReceiptFault) {
        guard let login = answer["login"]?.string, login.isExactly("success") else { throw .notSuccessful }
        guard let proof = answer["proof"]?.string, proof.isExactly("signed") else {
            throw .notSigned(proof: answer["proof"]?.string)
        }
        guard let device = answer["device"]?.string, let receipt = answer["receipt"]?.string,
            let context = answer["context"]?.string
        else { throw .incomplete }
        self.init(
            device: device, receipt: receipt, context: context,
            owner: answer["webauthn"].flatMap { OwnerAssertion(json: $0) })
    }
}
