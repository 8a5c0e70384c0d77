/// The associated data with which the secret of a code factor is sealed. In another row, or for
/// another user or website, the secret cannot be decrypted.
public enum FactorSeal {
    public static func associated(website: WebsiteID, user: UserID, kind: Factor, row: FactorID) -> [UInt8] {
        Array("twoefay factor".utf8) + website.bytes + user.bytes + row.bytes + Array(kind.rawValue.utf8)
    }
}
