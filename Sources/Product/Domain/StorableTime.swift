import World

extension Timestamp {
    /// The times that somebody may choose: from 1970 to the end of the year 9999, but for its last
    /// day. Later years have five digits. As text, which SQLite compares, they would be in the
    /// past.
    public static let choosable = Timestamp(seconds: 0)..<Timestamp(seconds: 253_402_214_400)
}
