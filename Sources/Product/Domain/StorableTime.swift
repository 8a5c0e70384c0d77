import World

extension Timestamp {
    /// The times that somebody may choose: from 1970 to the end of the year 9999, but for its last
    /// day. Later years have five digits. As text, which SQLite compares, they would be in the
    /// past.
    public static let choosable =
        Timestamp(seconds: choosableSeconds.lowerBound)..<Timestamp(seconds: choosableSeconds.upperBound)
    /// The same times in seconds since 1970, to check a number before it becomes a time.
    public static let choosableSeconds: Range<Int64> = 0..<253_402_214_400
}
