/// The associated data with which the webhook secrets of a website are sealed. In another website's
/// row they cannot be decrypted.
public enum WebhookSecretSeal {
    public static func associated(website: WebsiteID) -> [UInt8] { Array("twoefay webhook".utf8) + website.bytes }
}
