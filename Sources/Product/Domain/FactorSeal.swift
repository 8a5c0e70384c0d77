/// What the secret of a code factor is sealed with: taken to another row, user or website, it does not open.
public enum FactorSeal {
    public static func associated(website: WebsiteID, user: UserID, kind: Factor, row: FactorID) -> [UInt8] {
        Array("twoefay factor".utf8) + website.bytes + user.bytes + row.bytes + Array(kind.rawValue.utf8)
    }
}
