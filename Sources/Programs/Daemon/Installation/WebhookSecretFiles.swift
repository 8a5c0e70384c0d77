import Bytes
import Crypto
import Domain
import Storage
import Webhooks

/// The webhook secrets of websites: sealed in the store, and written to a file once for the
/// website.
extension MasterKey {
    public func seal(_ secrets: WebhookSecrets, of website: WebsiteID) throws(Failure)
        -> Storage.WebhookEndpoints.Secrets
    {
        do throws(CryptoFailure) {
            let sealer = try sealer()
            let sealed = try sealer.seal(
                secrets.text.reveal(), associated: WebhookSecretSeal.associated(website: website))
            return Storage.WebhookEndpoints.Secrets(sealed: sealed, sealedBy: sealer.currentID)
        } catch {
            throw Failure(
                .failed, "the secret cannot be sealed: \(error)", next: "The machine may be out of memory.")
        }
    }

    public func open(_ webhook: Storage.WebhookEndpoints.View, of website: WebsiteID) throws(Failure) -> WebhookSecrets
    {
        let next =
            "It may be sealed under a master key of another machine. Restore that key, or create a new secret with "
            + "'twoefay website webhook NAME rotate-secret --at-once', and give it to the website."
        let text: [UInt8]
        do {
            text = try sealer().open(webhook.sealed, associated: WebhookSecretSeal.associated(website: website))
        } catch {
            throw Failure(.failed, "the webhook secret cannot be decrypted: \(error)", next: next)
        }
        guard let secrets = WebhookSecrets(text: Secret(text), previousUntil: webhook.previousUntil) else {
            throw Failure(.failed, "the sealed value is not a webhook secret", next: next)
        }
        return secrets
    }
}

extension WebhookSecret {
    /// Writes the secret to a file that only its owner can read. The operator gives this file to
    /// the website.
    public func write(to path: String) throws(Files.Problem) {
        try Files.create(path, text.reveal() + [UInt8(ascii: "\n")], mode: 0o600)
    }
}
