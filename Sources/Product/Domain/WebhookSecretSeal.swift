/// What the secrets of a website's callback are sealed with: taken to another website's row, they do not open.
public enum WebhookSecretSeal {
    public static func associated(website: WebsiteID) -> [UInt8] { Array("twoefay callback".utf8) + website.bytes }
}
